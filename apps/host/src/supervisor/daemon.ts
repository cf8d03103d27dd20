import { closeSync, fchmodSync, openSync, writeSync } from 'node:fs'
import path from 'node:path'
import { type StartSpec, STOP_REASON_FILE } from '@sandwire/internal-api'
import { INSIDE, type OutsidePaths } from '../isolation/isolation.ts'
import { readLines } from '../read-lines.ts'

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

function isReady(line: string): boolean {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null && 'type' in value && value.type === 'ready'
  } catch {
    // Something else was printed first.
    return false
  }
}

/** Calls back at the line in which sandboxd says that it listens, and reads on, so that nobody blocks on writing more. */
export async function watchForReady(stdout: ReadableStream<Uint8Array>, onReady: () => void): Promise<void> {
  for await (const line of readLines(stdout)) if (isReady(line)) onReady()
}

/** Tells sandboxd why it is about to be stopRequested to end, so that it can notify whoever is attached. What is in the way stays. */
export function writeStopReason({ daemonSocket }: Pick<OutsidePaths, 'daemonSocket'>, reason: string): void {
  try {
    // The sandbox can put anything there: nothing is followed, and nothing replaced.
    const fd = openSync(path.join(path.dirname(daemonSocket), STOP_REASON_FILE), 'wx', 0o600)
    try {
      // sandboxd is another user, and the only other one who can enter the folder.
      fchmodSync(fd, 0o644)
      writeSync(fd, reason)
    } finally {
      closeSync(fd)
    }
  } catch {
    // No room, or something else of that name: then it is told without a reason.
  }
}
