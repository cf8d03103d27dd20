import type { AgentState, JournalEntry } from '@sandwire/agent'
import { claudeCloseOfError } from '@sandwire/internal-api'
import { SandwireError, TokenBucket } from '@sandwire/protocol'
import type { AgentRegistry } from '../agents/agent-registry.ts'
import { EventSocket, type FeedAdapter } from '../agents/event-socket.ts'
import type { StoredEntry } from '../agents/journal-file.ts'
import type { RunRecord } from '../agents/run-record.ts'
import type { Caller } from '../caller.ts'
import { ClaudeCodec, type ClaudeCodecOptions, system } from './claude-codec.ts'
import { ClaudeSession } from './claude-session.ts'

/** How long the program of a session without clients waits for one while it has nothing to do. */
const DETACHED_MS = 60_000
/** Messages of one client. Each is written to the program, which may not read them. */
const MESSAGES_PER_SECOND = 10
const MESSAGE_BURST = 200

const ENDING: ReadonlySet<AgentState> = new Set(['ending', 'collecting', 'ended'])

export interface ClaudeStreamsDependencies {
  readonly now: () => number
  readonly mintId: () => string
}

/** A session with the number of its clients. */
interface OpenSession {
  readonly session: ClaudeSession
  clients: number
  timer: ReturnType<typeof setTimeout> | undefined
}

/** Connections of `/ws/claude-stream` to runs of Claude Code. */
export class ClaudeStreams {
  readonly #agents: AgentRegistry
  readonly #deps: ClaudeStreamsDependencies
  readonly #sessions = new WeakMap<RunRecord, OpenSession>()

  constructor(agents: AgentRegistry, deps: ClaudeStreamsDependencies) {
    this.#agents = agents
    this.#deps = deps
    // A client that never comes does not leave.
    agents.onShared((record) => this.#endLater(record, this.#sessionOf(record)))
  }

  /**
   * The connection for an upgrade: `name` of the session for the client; `resumed`, `input` and `join` as 0 or 1. A client that joins
   * needs a program at work: throws `run_ended` otherwise, so that control starts another one.
   */
  open(record: RunRecord, query: URLSearchParams, caller: Caller): EventSocket {
    const { meta, lineFeed } = record
    if (meta.driver.start.shares !== true)
      throw new SandwireError('not_found', 'The run is no session of this kind')
    const state = this.#agents.run(meta.run)?.state ?? 'ended'
    if (query.get('join') === '1' && ENDING.has(state))
      throw new SandwireError('run_ended', 'The program of the session is ending or has ended')
    const open = this.#sessionOf(record)
    const options = {
      name: query.get('name') ?? meta.run,
      isResumed: query.get('resumed') === '1',
      mayInput: query.get('input') === '1',
      by: caller.identity,
      mintId: this.#deps.mintId,
    }
    return new EventSocket(lineFeed, open.session.sentSeq, caller, this.#adapt(record, open, options))
  }

  #sessionOf(record: RunRecord): OpenSession {
    const known = this.#sessions.get(record)
    if (known !== undefined) return known
    const session = new ClaudeSession(record.meta.driver.start)
    const open: OpenSession = { session, clients: 0, timer: undefined }
    this.#sessions.set(record, open)
    // Stays until the run has ended.
    const viewer = {
      send: ({ json }: StoredEntry) => (session.entry(parse(json)), true),
      partial: () => undefined,
      end: () => undefined,
    }
    record.lineFeed.add(viewer, 0)
    return open
  }

  #adapt(record: RunRecord, open: OpenSession, options: ClaudeCodecOptions): FeedAdapter {
    const { now } = this.#deps
    const { session } = open
    const codec = new ClaudeCodec(options, session)
    const bucket = new TokenBucket(MESSAGES_PER_SECOND, MESSAGE_BURST, now())
    return {
      opened: () => {
        open.clients += 1
        clearTimeout(open.timer)
        return codec.greet()
      },
      entry: ({ seq, json }) => {
        session.sent(seq)
        return codec.entry(parse(json))
      },
      partial: (json) => codec.partial(json),
      received: (message) => {
        if (bucket.take(1, now())) return { texts: this.#perform(record, codec, message) }
        const error = new SandwireError('rate_limited', 'Cannot take more messages now')
        const { last, ...end } = claudeCloseOfError(error)
        return { texts: [last], end }
      },
      closed: () => {
        open.clients -= 1
        this.#endLater(record, open)
      },
    }
  }

  /** Returns messages for the client. */
  #perform(record: RunRecord, codec: ClaudeCodec, message: string | Uint8Array): readonly string[] {
    const texts: string[] = []
    try {
      for (const effect of codec.fromClient(message))
        if (effect.do === 'toClient') texts.push(effect.text)
        else this.#runOf(record).on(effect.input)
    } catch (caught) {
      texts.push(system('error', SandwireError.from(caught).message))
    }
    return texts
  }

  #runOf({ meta }: RunRecord) {
    const run = this.#agents.run(meta.run)
    if (run === undefined) throw new SandwireError('conflict', 'Cannot reach the agent: the run has ended')
    return run
  }

  /** Ends the program when no client comes back. Its conversation can be resumed with another one. */
  #endLater(record: RunRecord, open: OpenSession): void {
    clearTimeout(open.timer)
    if (open.clients > 0 || record.result !== undefined) return
    open.timer = setTimeout(() => {
      if (record.result !== undefined) return
      const run = this.#agents.run(record.meta.run)
      if (run?.state === 'idle')
        run.on({ kind: 'stop', reason: 'completed', message: 'No client is connected' })
      else this.#endLater(record, open)
    }, DETACHED_MS)
    open.timer.unref()
  }
}

function parse(json: string): JournalEntry {
  return JSON.parse(json) as JournalEntry
}
