import { createHash } from 'node:crypto'
import { eventually, patternAt, Random, ReceivedStream } from '@sandwire/testing'
import { attach } from '@sandwire/client'
import type { RunningHost } from '../e2e/support/control.ts'
import { workerdOf } from '../e2e/support/deployment.ts'

/** Input per write: odd, so that kills fall anywhere within frames. */
const BLOCK_BYTES = 60_919
/** Time one reattach may take before the run fails. */
const REATTACH_MS = 30_000

export interface WorkerdKillStressOptions {
  /** Read again at every kill, because the host may have been restarted at the same address. */
  readonly host: RunningHost
  readonly sandbox: string
  readonly seed: number
  readonly kills: number
  /** Bytes each way. */
  readonly totalBytes: number
  readonly onKill?: (done: number) => void
}

export interface WorkerdKillStressResult {
  readonly kills: number
  readonly written: string
  readonly returned: string
  readonly returnedBytes: number
  /** Times from the disconnect to the reattach; the next kill waits for it. */
  readonly reattachMs: readonly number[]
}

/** Kills workerd at random offsets of a transfer through `cat`, and compares both ends. */
export async function runWorkerdKillStress(
  options: WorkerdKillStressOptions,
): Promise<WorkerdKillStressResult> {
  const { sandbox, seed, kills, totalBytes } = options
  const { url, headers } = options.host
  const random = new Random(seed)
  // No kill at the very end: one that is delayed by a restart needs output after it.
  const lastMark = Math.floor(totalBytes * 0.9)
  const marks = Array.from({ length: kills }, () => random.int(1, lastMark)).sort((a, b) => a - b)
  const returned = new ReceivedStream('digest')
  const reattachMs: number[] = []
  let lostMs: number | undefined
  /** True until the reattach after a kill. */
  let isKilled = false
  let done = 0
  const killWhenDue = (): void => {
    const mark = marks[done]
    if (mark === undefined || returned.length < mark || lostMs !== undefined || isKilled) return
    const pid = workerdOf(options.host)
    if (pid === undefined) return
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It had already ended; the next output retries.
      return
    }
    isKilled = true
    done += 1
    options.onKill?.(done)
  }
  const handle = attach({
    url,
    request: { sandbox, cmd: 'cat', mode: 'pipe' },
    credentials: async () => ({ headers }),
    onOutput: (_, bytes) => {
      returned.push(bytes)
      killWhenDue()
    },
  })
  handle.status.subscribe((status) => {
    if (status.kind === 'reconnecting') lostMs ??= performance.now()
    if (status.kind !== 'attached' || lostMs === undefined) return
    reattachMs.push(performance.now() - lostMs)
    lostMs = undefined
    isKilled = false
  })
  const written = createHash('sha256')
  for (let at = 0; at < totalBytes; at += BLOCK_BYTES) {
    const block = patternAt(seed, at, Math.min(BLOCK_BYTES, totalBytes - at))
    written.update(block)
    await handle.write(block)
  }
  handle.eof()
  await handle.exit
  await eventually(() => workerdOf(options.host) !== undefined, { what: 'workerd', timeoutMs: REATTACH_MS })
  return {
    kills: done,
    written: written.digest('hex'),
    returned: returned.sha256,
    returnedBytes: returned.length,
    reattachMs,
  }
}
