import { isSecureUrl } from '@sandwire/operator-settings'
import { type Environment, read } from './input.ts'
import type { Secrets } from './secrets.ts'

/** Fly Sprites as the provider of sandboxes, as control expects it. */
export interface Sprites {
  /** Origin of the API. */
  readonly baseUrl: string
  /** The operator's own sprite, which then is the one sandbox; absent: each sandbox has a sprite of its own. */
  readonly spriteName?: string
  /** Where sandboxd listens in a sprite. */
  readonly service: { readonly host: string; readonly port: number; readonly path: string }
  /** What new sprites download; absent with `spriteName`. */
  readonly program?: { readonly url: string; readonly sha256: string }
}

const DEFAULT_BASE_URL = 'https://api.sprites.dev'
const DEFAULT_PORT = '8080'
const HOSTS: readonly string[] = ['localhost', '127.0.0.1']

/** True when sandboxes are sprites: `SPRITES_SPRITE_NAME` implies it. */
export function usesSprites(env: Environment): boolean {
  const provider = read(env, 'SANDWIRE_PROVIDER')
  return provider === 'sprites' || (provider === undefined && read(env, 'SPRITES_SPRITE_NAME') !== undefined)
}

function validateService(env: Environment, problems: string[]): Sprites['service'] {
  const host = read(env, 'SPRITES_WORKSPACE_SERVICE_HOST') ?? 'localhost'
  const port = read(env, 'SPRITES_WORKSPACE_SERVICE_PORT') ?? DEFAULT_PORT
  const path = (read(env, 'SPRITES_WORKSPACE_SERVICE_PATH') ?? '').replace(/\/+$/, '')
  if (!HOSTS.includes(host))
    problems.push(
      `SPRITES_WORKSPACE_SERVICE_HOST is "${host}": sandboxd listens on the loopback of its sprite; set it to localhost, or unset it`,
    )
  if (!/^[1-9][0-9]{0,4}$/.test(port) || Number(port) > 65_535)
    problems.push(`SPRITES_WORKSPACE_SERVICE_PORT is "${port}": give a whole number from 1 to 65535`)
  if (!/^(?:\/[A-Za-z0-9._~-]{1,64}){0,8}$/.test(path))
    problems.push(`SPRITES_WORKSPACE_SERVICE_PATH is "${path}": give a path such as /internal/v1`)
  return { host, port: Number(port), path }
}

function validateProgram(env: Environment, problems: string[]): Sprites['program'] {
  const url = read(env, 'SPRITES_SANDBOXD_URL')
  const sha256 = read(env, 'SPRITES_SANDBOXD_SHA256')
  if (url === undefined || sha256 === undefined) {
    problems.push(
      'SANDWIRE_PROVIDER=sprites needs SPRITES_SPRITE_NAME, or SPRITES_SANDBOXD_URL and SPRITES_SANDBOXD_SHA256, from which each new sprite installs sandboxd',
    )
    return undefined
  }
  if (!isSecureUrl(url)) problems.push(`SPRITES_SANDBOXD_URL is "${url}": give an https URL`)
  if (!/^[0-9a-f]{64}$/.test(sha256))
    problems.push(
      `SPRITES_SANDBOXD_SHA256 is "${sha256}": give 64 hexadecimal digits, as sha256sum prints them`,
    )
  return { url, sha256 }
}

export interface SpritesContext {
  readonly hasWorkspace: boolean
  /** Other accounts than the local one can sign in. */
  readonly hasOtherUsers: boolean
  readonly secrets: Pick<Secrets, 'spritesApiToken'>
}

/** Validates the settings of Sprites; undefined when another provider creates sandboxes. */
export function validateSprites(
  env: Environment,
  { hasWorkspace, hasOtherUsers, secrets }: SpritesContext,
  problems: string[],
): Sprites | undefined {
  if (!usesSprites(env)) return undefined
  const baseUrl = read(env, 'SPRITES_BASE_URL') ?? DEFAULT_BASE_URL
  const spriteName = read(env, 'SPRITES_SPRITE_NAME')
  if (!isSecureUrl(baseUrl) || new URL(baseUrl).pathname !== '/')
    problems.push(`SPRITES_BASE_URL is "${baseUrl}": give an https URL without a path`)
  if (spriteName !== undefined && !/^[a-z0-9][a-z0-9-]{0,62}$/.test(spriteName))
    problems.push(`SPRITES_SPRITE_NAME is "${spriteName}": give the name of a sprite`)
  if (secrets.spritesApiToken === undefined)
    problems.push('Sprites need SPRITES_API_TOKEN, or a file with the token in SPRITES_API_TOKEN_FILE')
  if (hasWorkspace)
    problems.push(
      'A served folder cannot be combined with Sprites: remove --workspace, or SPRITES_SPRITE_NAME',
    )
  if (spriteName !== undefined && hasOtherUsers)
    problems.push(
      'SPRITES_SPRITE_NAME is one sprite, which several accounts cannot share: unset it, so that each sandbox has its own sprite, or remove the issuers and secrets',
    )
  const service = validateService(env, problems)
  const program = spriteName === undefined ? validateProgram(env, problems) : undefined
  if (!URL.canParse(baseUrl)) return undefined
  return {
    baseUrl: new URL(baseUrl).origin,
    service,
    ...(spriteName !== undefined && { spriteName }),
    ...(program !== undefined && { program }),
  }
}
