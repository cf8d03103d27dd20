import { createStore, type Store } from '@sandwire/client'
import type { TerminalState } from '@sandwire/react'
import { participantsOf } from '../sharing/people.ts'
import { sharingTexts } from '../texts/sharing.ts'

/** What the page itself knows of a session that it has open. */
export interface OpenSession {
  /** As the terminal told it; empty: it told none. */
  readonly title: string
  readonly isAttached: boolean
  /** Its process ended, whatever a list from before says. */
  readonly hasEnded: boolean
  /** Names of those who are there besides this person. */
  readonly others: readonly string[]
}

type KnownState = Pick<TerminalState, 'session' | 'title' | 'status' | 'presence' | 'attachment'>
type Sessions = Readonly<Record<string, OpenSession>>

/** The sessions of terminals, by id. */
function sessionsOf(states: readonly KnownState[]): Sessions {
  return Object.fromEntries(
    states.flatMap((state) => {
      const { session, title, status } = state
      if (session === undefined) return []
      const others = participantsOf(state).filter(({ isSelf, isConnected }) => !isSelf && isConnected)
      const names = others.map(({ name, isOwn }) => (isOwn ? sharingTexts.inAnotherWindow : name))
      const is = { isAttached: status.is === 'attached', hasEnded: status.is === 'exited' }
      return [[session, { title, ...is, others: names }]]
    }),
  )
}

/** The sessions that a page has open, told again only when something about them changed. */
export class OpenSessions {
  readonly #store = createStore<Sessions>({})

  get all(): Store<Sessions> {
    return this.#store
  }

  tell(states: readonly KnownState[]): void {
    const next = sessionsOf(states)
    if (JSON.stringify(next) !== JSON.stringify(this.#store.get())) this.#store.set(next)
  }
}
