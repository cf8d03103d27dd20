import { SOFTWARE_VERSION } from '@sandwire/protocol'
import { type Environment, read } from './input.ts'

/** The Docker engine and images of sandboxes. */
export interface Containers {
  /** Path of its socket. */
  readonly socket: string
  /** Image of a sandbox, built by `npm run image`. */
  readonly image: string
  /** Image of workerd's sidecar, through which all connections pass. */
  readonly egressImage: string
}

const DEFAULT_SOCKET = '/var/run/docker.sock'
/** The version that this workerd expects; a test compares it with the package. */
export const DEFAULT_EGRESS_IMAGE =
  'cloudflare/proxy-everything:3cb1195@sha256:0ef6716c52430096900b150d84a3302057d6cd2319dae7987128c85d0733e3c8'
/** Valid image names; others could inject a different request to the engine. */
const IMAGE = /^[a-zA-Z0-9][a-zA-Z0-9._:@/-]{0,255}$/

function validateSocket(env: Environment, problems: string[]): string {
  const host = read(env, 'DOCKER_HOST')
  if (host === undefined) return DEFAULT_SOCKET
  if (host.startsWith('unix:///')) return host.slice('unix://'.length)
  problems.push(
    `DOCKER_HOST is "${host}": only an engine on this machine is supported; set it to unix:///PATH`,
  )
  return DEFAULT_SOCKET
}

function validateImage(env: Environment, name: string, fallback: string, problems: string[]): string {
  const image = read(env, name) ?? fallback
  if (!IMAGE.test(image)) problems.push(`${name} is "${image}": not a valid image name`)
  return image
}

/** Validates the container settings; undefined when the host creates sandboxes. */
export function validateContainers(
  env: Environment,
  { hasWorkspace }: { readonly hasWorkspace: boolean },
  problems: string[],
): Containers | undefined {
  const provider = read(env, 'SANDWIRE_PROVIDER') ?? 'host'
  if (provider === 'host' || provider === 'sprites') return undefined
  if (provider !== 'container') {
    problems.push(`SANDWIRE_PROVIDER is "${provider}": set it to host, container or sprites, or unset it`)
    return undefined
  }
  if (hasWorkspace)
    problems.push(
      'A served folder cannot be combined with SANDWIRE_PROVIDER=container: remove --workspace and WORKSPACE_MODE, or SANDWIRE_PROVIDER',
    )
  const isolation = read(env, 'SANDWIRE_ISOLATION')
  if (isolation !== undefined)
    problems.push(
      `SANDWIRE_ISOLATION is "${isolation}", which does not apply to SANDWIRE_PROVIDER=container: unset one of them`,
    )
  return {
    socket: validateSocket(env, problems),
    image: validateImage(env, 'SANDWIRE_IMAGE', `sandwire-sandbox:${SOFTWARE_VERSION}`, problems),
    egressImage: validateImage(env, 'SANDWIRE_EGRESS_IMAGE', DEFAULT_EGRESS_IMAGE, problems),
  }
}
