import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import {
  type AgentState,
  type DiffFacts,
  MAX_EVENT_DIFF_BYTES,
  type Outcome,
  type Partial,
  type RunEvent,
  type RunResult,
  type Usage,
} from '@sandwire/agent'
import { type BaseRecord, readBase } from './base-tree/base-tree.ts'
import { EventFeed } from './event-feed.ts'
import { JournalFile } from './journal-file.ts'

/** What is stored about a run before anything else. */
export interface RunMeta {
  readonly run: string
  /** Names the journal. */
  readonly journal: string
  /** Of the request that started it. */
  readonly startHash: string
  readonly startedMs: number
  readonly secrets: readonly string[]
  readonly isTamperProof: boolean
}

/** What is known at the end of a run besides how it ended. */
export interface RunTotals {
  readonly usage: Usage
  readonly agentSessionId: string | null
  readonly model: string | null
  /** Files that events have named already. */
  readonly announcedFiles: ReadonlyMap<string, 'create' | 'modify'>
}

export const NO_USAGE: Usage = {
  turns: 0,
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  costUsd: null,
}

/** The folder of one run: what it was started with, its journal, its base, its diff and its result. */
export class RunRecord {
  readonly folder: string
  readonly meta: RunMeta
  readonly journal: JournalFile
  readonly feed: EventFeed
  readonly #wallClock: () => number
  #result: RunResult | undefined

  /** Creates the folder, or opens that of an earlier sandboxd when `meta` is not given. */
  constructor(folder: string, wallClock: () => number, meta?: RunMeta) {
    this.folder = folder
    this.#wallClock = wallClock
    if (meta !== undefined) {
      // Its user must reach the base in it, and nothing else.
      mkdirSync(folder)
      chmodSync(folder, 0o711)
      writeAtomically(path.join(folder, 'meta.json'), JSON.stringify(meta))
    }
    this.meta = meta ?? (JSON.parse(readFileSync(path.join(folder, 'meta.json'), 'utf8')) as RunMeta)
    this.#result = readResult(folder)
    this.journal = new JournalFile(path.join(folder, 'journal'))
    this.feed = new EventFeed(this.journal, this.#result !== undefined)
    // An earlier sandboxd died after it had stored the result.
    const last = this.journal.read(this.journal.lastSeq - 1, 1, 0)[0]
    if (this.#result !== undefined && last?.type !== 'complete') this.#emitEnd(this.#result)
  }

  get result(): RunResult | undefined {
    return this.#result
  }

  get patchFile(): string {
    return path.join(this.folder, 'patch')
  }

  get base(): BaseRecord | undefined {
    return readBase(this.folder)
  }

  emit(event: RunEvent): void {
    const wasFull = this.journal.isFull
    const entry = this.journal.append(event, this.#wallClock())
    if (entry !== undefined) this.feed.appended(entry)
    if (!wasFull && this.journal.isFull)
      this.emit({
        type: 'status',
        status: 'warning',
        message: 'The journal is full; further output is not stored',
      })
  }

  emitState(state: AgentState): void {
    this.emit({ type: 'status', status: 'state', state })
  }

  partial(partial: Partial['partial']): void {
    this.feed.partial(partial)
  }

  /** Stores the result, then emits the last events. */
  finish(
    outcome: Outcome,
    totals: RunTotals,
    { diff, diffProblem }: { readonly diff: DiffFacts | null; readonly diffProblem: string | null },
  ): void {
    const { announcedFiles, ...facts } = totals
    const base = this.base
    const result: RunResult = {
      ...outcome,
      base:
        base === undefined ? null : { treeHash: base.treeHash, commit: base.commit, isCommit: base.isCommit },
      diff,
      diffProblem,
      ...facts,
      isTamperProof: this.meta.isTamperProof,
      startedMs: this.meta.startedMs,
      endedMs: this.#wallClock(),
    }
    for (const { path: name, action, from } of diff?.files ?? []) {
      if (announcedFiles.get(name) === action) continue
      this.emit({ type: 'file_change', path: name, action, ...(from === undefined ? {} : { from }) })
    }
    writeAtomically(path.join(this.folder, 'result.json'), JSON.stringify(result))
    this.#result = result
    this.#emitEnd(result)
    // The base is needed for the diff only, and takes as much space as the files.
    rmSync(path.join(this.folder, 'base', 'objects'), { recursive: true, force: true })
  }

  #emitEnd(result: RunResult): void {
    const { diff, exitCode, signal } = result
    this.emit({ type: 'result', ...this.#shownDiff(diff), ...shownResult(result) })
    this.emitState('ended')
    this.emit({ type: 'complete', exitCode, signal })
  }

  remove(): void {
    this.journal[Symbol.dispose]()
    rmSync(this.folder, { recursive: true, force: true })
  }

  #shownDiff(diff: DiffFacts | null): { readonly diff: string; readonly isDiffOmitted: boolean } {
    if (diff === null) return { diff: '', isDiffOmitted: false }
    if (diff.bytes > MAX_EVENT_DIFF_BYTES) return { diff: '', isDiffOmitted: true }
    const bytes = readFileSync(this.patchFile)
    const text = bytes.toString('utf8')
    return Buffer.from(text).equals(bytes)
      ? { diff: text, isDiffOmitted: false }
      : { diff: '', isDiffOmitted: true }
  }
}

function shownResult({ summary, status, diff }: RunResult): {
  readonly summary: string
  readonly filesChanged: readonly string[]
  readonly status: RunResult['status']
  readonly treeHash: string | null
} {
  const filesChanged = (diff?.files ?? []).map((file) => file.path)
  return { summary, filesChanged, status, treeHash: diff?.treeHash ?? null }
}

function readResult(folder: string): RunResult | undefined {
  try {
    return JSON.parse(readFileSync(path.join(folder, 'result.json'), 'utf8')) as RunResult
  } catch {
    // Not ended yet.
    return undefined
  }
}

/** A crash leaves the old content or the new, nothing in between. */
function writeAtomically(file: string, content: string): void {
  writeFileSync(`${file}.new`, content, { mode: 0o600, flush: true })
  renameSync(`${file}.new`, file)
}
