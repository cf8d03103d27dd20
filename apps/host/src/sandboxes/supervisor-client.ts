import { closeSync, openSync } from 'node:fs'
import type { StopReason } from '@sandwire/protocol'
import { readLines } from '../read-lines.ts'
import { type Announcement, decodeAnnouncement } from '../supervisor/announce.ts'
import type { SandboxFiles } from '../supervisor/sandbox-files.ts'

/** Supervisors answer at once, except on a loaded machine. */
const ANSWER_MS = 2_000

/** Requests on a supervisor's control socket. */
export type SupervisorRequest = 'GET /status' | 'POST /claim' | `POST /stop?reason=${StopReason}`

/** Sends a request to a supervisor; false when it fails. */
export async function requestSupervisor(controlSocket: string, request: SupervisorRequest): Promise<boolean> {
  const [method = 'GET', path = '/'] = request.split(' ')
  try {
    const response = await fetch(`http://supervisor${path}`, {
      unix: controlSocket,
      method,
      signal: AbortSignal.timeout(ANSWER_MS),
      // No keep-alive: the supervisor may be replaced.
      headers: { connection: 'close' },
    })
    return response.ok
  } catch {
    // Ending or gone; the caller checks its process.
    return false
  }
}

/** Variables passed to supervisors; nothing else of the host's environment is. */
const PASSED_VARIABLES = ['PATH', 'HOME', 'LANG', 'TMPDIR'] as const

/** A supervisor that was started. */
export interface Spawned {
  /** Kills it, even before it has written a state file. */
  readonly kill: () => void
  /** Result of the start; undefined when the supervisor ended without one. */
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

/** Starts a supervisor in its own session, so that it outlives this process. */
export function spawnSupervisor(program: readonly string[], files: SandboxFiles): Spawned {
  const crash = openSync(files.crash, 'w', 0o600)
  try {
    const child = Bun.spawn([...program, files.spec], {
      // Bun reads settings from its working directory; only root can write to `/`.
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
