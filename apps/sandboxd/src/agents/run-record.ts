import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import {
  type AgentState,
  ClaudeDriver,
  type ClaudeDriverOptions,
  deriveEvents,
  type DiffFacts,
  type JournalEntry,
  MAX_EVENT_DIFF_BYTES,
  type Outcome,
  type RecordedInput,
  type RunEvent,
  type RunResult,
  type Usage,
} from '@sandwire/agent'
import { type BaseRecord, readBase } from './base-tree/base-tree.ts'
import { EventFeed } from './event-feed.ts'
import { JournalFile, type StoredEntry } from './journal-file.ts'

/** What is stored about a run before anything else. */
export interface RunMeta {
  readonly run: string
  /** Names the journal. */
  readonly journal: string
  /** Of the request that started it. */
  readonly startHash: string
  readonly startedMs: number
  readonly secrets: readonly string[]
  /** From which, with the journal, the events follow. Without the run's environment. */
  readonly driver: ClaudeDriverOptions
  readonly isTamperProof: boolean
}

/** What is known at the end of a run, in addition to its outcome. */
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

/** Events without which a run cannot be understood: stored even if the journal is full. */
const ESSENTIAL: ReadonlySet<RunEvent['type']> = new Set(['result', 'complete', 'awaiting_input', 'status'])

/** The folder of one run: what it was started with, its journal, the events that follow from it, its base, its diff and its result. */
export class RunRecord {
  readonly folder: string
  readonly meta: RunMeta
  readonly journal: JournalFile
  readonly events: JournalFile
  /** Of the events. */
  readonly feed: EventFeed
  /** Of the journal. */
  readonly lineFeed: EventFeed
  readonly #wallClock: () => number
  /** Time of the last journal entry. */
  #atMs: number
  #nowMs = 0
  /** From then on only essential events are stored, as such. */
  #isFull = false
  #result: RunResult | undefined

  /** Creates the folder, or opens that of an earlier sandboxd when `meta` is not given. */
  constructor(folder: string, wallClock: () => number, meta?: RunMeta) {
    this.folder = folder
    this.#wallClock = wallClock
    this.#atMs = wallClock()
    if (meta !== undefined) {
      // Its user must reach the base in it, and nothing else.
      mkdirSync(folder)
      chmodSync(folder, 0o711)
      writeAtomically(path.join(folder, 'meta.json'), JSON.stringify(meta))
    }
    this.meta = meta ?? (JSON.parse(readFileSync(path.join(folder, 'meta.json'), 'utf8')) as RunMeta)
    this.#result = readResult(folder)
    this.journal = new JournalFile(path.join(folder, 'journal'))
    this.events = new JournalFile(path.join(folder, 'events'))
    this.feed = new EventFeed(this.events, this.#result !== undefined)
    this.lineFeed = new EventFeed(this.journal, this.#result !== undefined)
    if (meta === undefined && this.#lastEvent?.type !== 'complete') this.#restoreEvents()
    // An earlier sandboxd died after it had stored the result.
    if (this.#result !== undefined) this.#reportEnd(this.#result)
  }

  get result(): RunResult | undefined {
    return this.#result
  }

  get patchFile(): string {
    return path.join(this.folder, 'patch')
  }

  get packFile(): string {
    return path.join(this.folder, 'pack')
  }

  get base(): BaseRecord | undefined {
    return readBase(this.folder)
  }

  /** Stores an input of the driver; the events that follow from it are emitted next. */
  record(input: RecordedInput, nowMs: number): void {
    this.#atMs = this.#wallClock()
    this.#nowMs = nowMs
    if (this.journal.isFull && !this.#isFull) {
      this.report({
        type: 'status',
        status: 'warning',
        message: 'The journal is full; further output is not stored',
      })
      this.#isFull = true
    }
    if (!this.#isFull) this.#append(input)
  }

  /** An event that follows from the last recorded input. */
  emit(event: RunEvent): void {
    if (!this.#isFull) return this.#emitted({ atMs: this.#atMs, event })
    if (ESSENTIAL.has(event.type)) this.report(event)
  }

  /** An event that follows from no input of the driver. */
  report(event: RunEvent): void {
    this.#atMs = this.#wallClock()
    this.#append({ kind: 'event', event })
    this.#emitted({ atMs: this.#atMs, event })
  }

  reportState(state: AgentState): void {
    this.report({ type: 'status', status: 'state', state })
  }

  #append(content: RecordedInput | { readonly kind: 'event'; readonly event: RunEvent }): void {
    const times = { atMs: this.#atMs, nowMs: this.#nowMs, eventSeq: this.events.lastSeq }
    this.lineFeed.appended(this.journal.append({ ...times, ...content }))
  }

  #emitted(event: { readonly atMs: number; readonly event: RunEvent }): void {
    this.feed.appended(this.events.append(event))
  }

  get #lastEvent(): StoredEntry | undefined {
    return this.events.read(this.events.lastSeq - 1, 1, 0)[0]
  }

  /** Appends the events that an earlier sandboxd, which stored their input, did not get to. */
  #restoreEvents(): void {
    const entries = this.journal.entries() as Generator<JournalEntry>
    for (const { seq, atMs, event } of deriveEvents(entries, new ClaudeDriver(this.meta.driver)))
      if (seq === this.events.lastSeq + 1) this.events.append({ atMs, event })
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
      this.report({ type: 'file_change', path: name, action, ...(from === undefined ? {} : { from }) })
    }
    writeAtomically(path.join(this.folder, 'result.json'), JSON.stringify(result))
    this.#result = result
    this.#reportEnd(result)
    // The base is needed for the diff only, and takes as much space as the files.
    rmSync(path.join(this.folder, 'base', 'objects'), { recursive: true, force: true })
  }

  /** Reports those of the last events that are missing. */
  #reportEnd(result: RunResult): void {
    const { diff, exitCode, signal } = result
    const last = this.#lastEvent
    const isReported =
      last?.type === 'complete' || (last?.type === 'status' && last.json.includes('"state":"ended"'))
    if (!isReported && last?.type !== 'result')
      this.report({ type: 'result', ...this.#shownDiff(diff), ...shownResult(result) })
    if (!isReported) this.reportState('ended')
    if (last?.type !== 'complete') this.report({ type: 'complete', exitCode, signal })
    this.feed.end()
    this.lineFeed.end()
  }

  remove(): void {
    this.journal[Symbol.dispose]()
    this.events[Symbol.dispose]()
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
