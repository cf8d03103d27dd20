import { SOFTWARE_VERSION } from '@sandwire/protocol'
import { type Environment, read } from './input.ts'

/** The Docker engine that workerd makes sandboxes with, and what of. */
export interface Containers {
  /** Path of its socket. */
  readonly socket: string
  /** Image of a sandbox, as `npm run image` makes it. */
  readonly image: string
  /** Image of what workerd puts beside each, which all its connections pass. */
  readonly egressImage: string
}

const DEFAULT_SOCKET = '/var/run/docker.sock'
/** The one that this version of workerd is made for; a test compares it with its package. */
export const DEFAULT_EGRESS_IMAGE =
  'cloudflare/proxy-everything:3cb1195@sha256:0ef6716c52430096900b150d84a3302057d6cd2319dae7987128c85d0733e3c8'
/** What image names are made of; anything else could become another request to the engine. */
const IMAGE = /^[a-zA-Z0-9][a-zA-Z0-9._:@/-]{0,255}$/

function validateSocket(env: Environment, problems: string[]): string {
  const host = read(env, 'DOCKER_HOST')
  if (host === undefined) return DEFAULT_SOCKET
  if (host.startsWith('unix:///')) return host.slice('unix://'.length)
  problems.push(
    `DOCKER_HOST is "${host}": workerd reaches an engine on this machine only, through a socket; give unix:///PATH`,
  )
  return DEFAULT_SOCKET
}

function validateImage(env: Environment, name: string, fallback: string, problems: string[]): string {
  const image = read(env, name) ?? fallback
  if (!IMAGE.test(image)) problems.push(`${name} is "${image}": give the name of an image`)
  return image
}

/** Judges what makes sandboxes; undefined: the host does, without containers. */
export function validateContainers(
  env: Environment,
  { hasWorkspace }: { readonly hasWorkspace: boolean },
  problems: string[],
): Containers | undefined {
  const provider = read(env, 'SANDWIRE_PROVIDER') ?? 'host'
  if (provider === 'host') return undefined
  if (provider !== 'container') {
    problems.push(`SANDWIRE_PROVIDER is "${provider}": set it to host or container, or unset it`)
    return undefined
  }
  if (hasWorkspace)
    problems.push(
      'A folder of this machine cannot be served from a container: leave out --workspace and WORKSPACE_MODE, or SANDWIRE_PROVIDER=container',
    )
  const isolation = read(env, 'SANDWIRE_ISOLATION')
  if (isolation !== undefined)
    problems.push(
      `SANDWIRE_ISOLATION is "${isolation}", but SANDWIRE_PROVIDER=container isolates by itself: unset one of them`,
    )
  return {
    socket: validateSocket(env, problems),
    image: validateImage(env, 'SANDWIRE_IMAGE', `sandwire-sandbox:${SOFTWARE_VERSION}`, problems),
    egressImage: validateImage(env, 'SANDWIRE_EGRESS_IMAGE', DEFAULT_EGRESS_IMAGE, problems),
  }
}
