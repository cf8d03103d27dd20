import { closeSync, openSync } from 'node:fs'
import type { StopReason } from '@sandwire/protocol'
import { readLines } from '../read-lines.ts'
import { type Announcement, decodeAnnouncement } from '../supervisor/announce.ts'
import type { SandboxFiles } from '../supervisor/sandbox-files.ts'

/** Time a supervisor has to answer; it does nothing that takes long, so only a loaded machine needs this much. */
const ANSWER_MS = 2_000

/** What can be stopRequested of a supervisor over its control socket. */
export type Order = 'GET /status' | 'POST /claim' | `POST /stop?reason=${StopReason}`

/** Asks a supervisor; false when it does not answer, or not well. */
export async function requestSupervisor(controlSocket: string, order: Order): Promise<boolean> {
  const [method = 'GET', path = '/'] = order.split(' ')
  try {
    const response = await fetch(`http://supervisor${path}`, {
      unix: controlSocket,
      method,
      signal: AbortSignal.timeout(ANSWER_MS),
      // A connection kept for later would outlive the supervisor behind it.
      headers: { connection: 'close' },
    })
    return response.ok
  } catch {
    // It is ending, or it is gone: its process tells which.
    return false
  }
}

/** What a supervisor's environment has of this one's; nothing else of the host is known to it. */
const PASSED_VARIABLES = ['PATH', 'HOME', 'LANG', 'TMPDIR'] as const

/** A supervisor that was started. */
export interface Spawned {
  /** Ends it at once, also when it never got as far as a state file. */
  readonly kill: () => void
  /** What it said of the start; undefined when it ended without a word. */
  readonly announcement: Promise<Announcement | undefined>
}

function passedEnvironment(): Record<string, string> {
  const kept: Record<string, string> = {}
  for (const name of PASSED_VARIABLES) {
    const value = process.env[name]
    if (value !== undefined) kept[name] = value
  }
  return kept
}

async function readAnnouncement(stdout: ReadableStream<Uint8Array>): Promise<Announcement | undefined> {
  for await (const line of readLines(stdout)) return decodeAnnouncement(line)
  return undefined
}

/** Starts a supervisor in a session of its own, so that it lives on when this process does not. */
export function spawnSupervisor(program: readonly string[], files: SandboxFiles): Spawned {
  const crash = openSync(files.crash, 'w', 0o600)
  try {
    const child = Bun.spawn([...program, files.spec], {
      // Bun reads settings from the folder it starts in; nobody but root can put any there.
      cwd: '/',
      env: passedEnvironment(),
      stdio: ['ignore', 'pipe', crash],
      detached: true,
    })
    child.unref()
    return { kill: () => child.kill('SIGKILL'), announcement: readAnnouncement(child.stdout) }
  } finally {
    closeSync(crash)
  }
}
