import path from 'node:path'
import type { StartSpec } from '@sandwire/internal-api'
import { INSIDE } from '../isolation/isolation.ts'

/** File with the environment of processes, in the folder that sandboxd and its supervisor share. */
export const ENV_FILE = 'env.json'

/** How sandboxd is started in a sandbox. */
export function createDaemonArguments(spec: StartSpec): string[] {
  const hasEnv = Object.keys(spec.env).length > 0
  const { maxSessions, outputBytesPerSecond } = spec
  return [
    '--listen',
    `unix:${INSIDE.daemonSocket}`,
    '--workspace',
    INSIDE.workspace,
    '--public-key',
    INSIDE.publicKey,
    '--sandbox',
    spec.id,
    ...(hasEgress(spec) ? ['--proxy-socket', INSIDE.proxySocket] : []),
    ...(maxSessions === undefined ? [] : ['--max-sessions', String(maxSessions)]),
    ...(outputBytesPerSecond === undefined
      ? []
      : ['--output-bytes-per-second', String(outputBytesPerSecond)]),
    ...(hasEnv ? ['--env-file', path.join(INSIDE.run, ENV_FILE)] : []),
  ]
}

/** Whether the sandbox may reach anything outside. */
export function hasEgress(spec: StartSpec): boolean {
  return spec.network.policy !== 'none'
}
