import type { NumberedEvent, RunEvent, RunResult } from '@sandwire/agent'
import type { DiffStore } from './diff-store.ts'
import type { RunSandbox } from './lifecycle.ts'
import type { RunOutcome } from './state.ts'
import type { RunStore } from './store.ts'

/** Fetches and stores the diff, then the result, which is stored last: with it the sandbox is no longer needed. */
export async function collectResult({
  sandbox,
  diffs,
  packs,
  store,
}: {
  readonly sandbox: Pick<RunSandbox, 'result' | 'diff' | 'pack'>
  readonly diffs: DiffStore
  readonly packs: DiffStore
  readonly store: RunStore
}): Promise<RunResult> {
  const result = await sandbox.result()
  const patch = result.diff === null ? undefined : await sandbox.diff()
  const diffBytes = patch === undefined ? null : await diffs.write(patch)
  const pack = (result.diff?.packBytes ?? null) === null ? undefined : await sandbox.pack()
  if (pack !== undefined) await packs.write(pack)
  store.update({ result, diffBytes, hasPack: pack !== undefined })
  return result
}

/** The last events of a run whose sandbox cannot report them. */
export function endEvents(
  lastSeq: number,
  {
    outcome,
    message,
    nowMs,
  }: { readonly outcome: RunOutcome; readonly message: string; readonly nowMs: number },
): readonly NumberedEvent[] {
  const events: RunEvent[] = [
    ...(message === '' ? [] : [{ type: 'stderr', data: `${message}\n` } as const]),
    {
      type: 'result',
      diff: '',
      isDiffOmitted: false,
      summary: message,
      filesChanged: [],
      status: outcome === 'lost' ? 'crashed' : outcome,
      treeHash: null,
    },
    { type: 'complete', exitCode: null, signal: null },
  ]
  return events.map((event, index) => ({ seq: lastSeq + index + 1, atMs: nowMs, event }))
}
