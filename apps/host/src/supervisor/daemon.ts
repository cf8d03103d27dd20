import { closeSync, fchmodSync, openSync, writeSync } from 'node:fs'
import path from 'node:path'
import { type StartSpec, STOP_REASON_FILE } from '@sandwire/internal-api'
import { INSIDE, type OutsidePaths } from '../isolation/isolation.ts'
import { readLines } from '../read-lines.ts'

/** File with the environment of processes, in sandboxd's run folder. */
export const ENV_FILE = 'env.json'

export interface DaemonOptions {
  /** Its workspace is a served folder, which other programs of the machine use too. */
  readonly isServed?: boolean
  /** It has loopback ports of its own, one of which leads to the credential gateway. */
  readonly hasGateway?: boolean
  /** How long control may take to save the files once more when the host shuts down. */
  readonly lastSaveMs?: number
}

/** Arguments of sandboxd in a sandbox. */
export function createDaemonArguments(
  spec: StartSpec,
  { isServed = false, hasGateway = false, lastSaveMs = 0 }: DaemonOptions = {},
): string[] {
  const hasEnv = Object.keys(spec.env).length > 0
  const { maxSessions, outputBytesPerSecond } = spec
  return [
    '--listen',
    `unix:${INSIDE.daemonSocket}`,
    '--workspace',
    INSIDE.workspace,
    ...(isServed ? ['--shared-workspace'] : []),
    '--save-home',
    INSIDE.home,
    '--state',
    INSIDE.state,
    '--public-key',
    INSIDE.publicKey,
    '--sandbox',
    spec.id,
    ...(hasEgress(spec) ? ['--proxy-socket', INSIDE.proxySocket] : []),
    ...(hasGateway ? ['--gateway-socket', INSIDE.gatewaySocket] : []),
    ...(lastSaveMs === 0 ? [] : ['--last-save-seconds', String(lastSaveMs / 1000)]),
    ...(maxSessions === undefined ? [] : ['--max-sessions', String(maxSessions)]),
    ...(outputBytesPerSecond === undefined
      ? []
      : ['--output-bytes-per-second', String(outputBytesPerSecond)]),
    ...(hasEnv ? ['--env-file', path.join(INSIDE.run, ENV_FILE)] : []),
  ]
}

/** True when the sandbox has a network policy other than `none`. */
export function hasEgress(spec: StartSpec): boolean {
  return spec.network.policy !== 'none'
}

function isReady(line: string): boolean {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null && 'type' in value && value.type === 'ready'
  } catch {
    // Other output.
    return false
  }
}

/** Calls `onReady` at sandboxd's ready line, and reads on, so that sandboxd never blocks on writing. */
export async function watchForReady(stdout: ReadableStream<Uint8Array>, onReady: () => void): Promise<void> {
  for await (const line of readLines(stdout)) if (isReady(line)) onReady()
}

/** Writes the stop reason for sandboxd, which passes it to attached clients. An existing file is not replaced. */
export function writeStopReason({ daemonSocket }: Pick<OutsidePaths, 'daemonSocket'>, reason: string): void {
  try {
    // The sandbox can write to this folder: no link is followed, no file replaced.
    const fd = openSync(path.join(path.dirname(daemonSocket), STOP_REASON_FILE), 'wx', 0o600)
    try {
      // Readable by sandboxd, the only other user who can enter the folder.
      fchmodSync(fd, 0o644)
      writeSync(fd, reason)
    } finally {
      closeSync(fd)
    }
  } catch {
    // Disk full, or the name exists: sandboxd stops without a reason.
  }
}
