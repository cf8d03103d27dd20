import { SandwireError } from '@sandwire/protocol'
import type { Selector } from './cut-outbox.ts'
import type { Caller } from './sandboxd-client.ts'

/** Requests about files that one person may have under way in one sandbox; a browser has six. */
const MAX_PER_PERSON = 64
/** All together: each holds a connection and a little memory. */
const MAX_ALL = 512

/** What the right to a request hangs on. */
export type Holder = Pick<Caller, 'identity' | 'login' | 'grant'>

function timedOut(): SandwireError {
  return new SandwireError('timed_out', 'The sandbox does not answer in time')
}

/** A request about files that is under way, until its answer has been read or it is ended. */
export class Transfer {
  readonly holder: Holder
  readonly #controller = new AbortController()
  readonly #onEnd: (transfer: Transfer) => void
  #stopClock: () => void = () => undefined
  #isAnswered = false
  #isOver = false

  constructor(holder: Holder, onEnd: (transfer: Transfer) => void) {
    this.holder = holder
    this.#onEnd = onEnd
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Ends it when whoever asked goes away. */
  follow(asking: AbortSignal): void {
    const gone = (): void => this.abort(new SandwireError('link_lost', 'Cannot answer: nobody is there'))
    if (asking.aborted) gone()
    else asking.addEventListener('abort', gone, { once: true, signal: this.signal })
  }

  /** Ends it unless there is an answer in time; the last time that is said counts. */
  awaitAnswer(ms: number): void {
    if (!this.#isAnswered) this.#limit(ms)
  }

  /** There is one, which has so long to be read. */
  answered(longestMs: number): void {
    this.#isAnswered = true
    this.#limit(longestMs)
  }

  /** Ends it because of what was sent, unless there is an answer to that already. */
  refuse(reason: SandwireError): void {
    if (!this.#isAnswered) this.abort(reason)
  }

  /** Ends it because the sandbox does not take what is sent, unless there is an answer already. */
  late(): void {
    this.refuse(timedOut())
  }

  /** Ends it: whoever waits for its answer is told why, whoever reads one sees it break off. */
  abort(reason: SandwireError): void {
    this.#controller.abort(reason)
    this.end()
  }

  #limit(ms: number): void {
    this.#stopClock()
    if (this.#isOver) return
    const timer = setTimeout(() => this.abort(timedOut()), ms)
    this.#stopClock = () => clearTimeout(timer)
  }

  /** It is over. */
  end(): void {
    this.#isOver = true
    this.#stopClock()
    this.#onEnd(this)
  }
}

/**
 * The requests about files that are under way in a sandbox. They pass through its object as long as they last, so that they
 * can be ended here, in the moment in which a right is withdrawn and without asking the sandbox.
 */
export class Transfers {
  readonly #running = new Set<Transfer>()

  open({ identity, login, grant }: Holder): Transfer {
    const own = [...this.#running].filter(({ holder }) => holder.identity === identity)
    if (own.length >= MAX_PER_PERSON || this.#running.size >= MAX_ALL)
      throw new SandwireError('rate_limited', 'Cannot take more requests about files at once', {
        retryAfterMs: 1_000,
      })
    const holder = {
      identity,
      ...(login === undefined ? {} : { login }),
      ...(grant === undefined ? {} : { grant }),
    }
    const transfer = new Transfer(holder, (ended) => void this.#running.delete(ended))
    this.#running.add(transfer)
    return transfer
  }

  get size(): number {
    return this.#running.size
  }

  /** Ends those that match everything given. */
  cut({ identity, session, grant, login }: Selector): void {
    // Files belong to no session.
    if (session !== undefined) return
    const fits = (asked: string | undefined, has: string | undefined): boolean =>
      asked === undefined || asked === has
    for (const transfer of this.#running) {
      const { holder } = transfer
      if (fits(identity, holder.identity) && fits(grant, holder.grant) && fits(login, holder.login))
        transfer.abort(new SandwireError('revoked', 'Cannot go on: the right to be here was withdrawn'))
    }
  }
}
