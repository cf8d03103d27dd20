import { createStore, type Store } from '@sandwire/client'
import type { TerminalState } from '@sandwire/react'
import { participantsOf } from '../sharing/participants.ts'
import { sharingTexts } from '../texts/sharing.ts'

/** What the page knows of a session that it has open. */
export interface OpenSession {
  /** Terminal title; may be empty. */
  readonly title: string
  readonly isAttached: boolean
  /** The process ended, even if a stale list says otherwise. */
  readonly hasEnded: boolean
  /** Names of the other connected participants. */
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
      const isAttached = status.kind === 'attached'
      const hasEnded = status.kind === 'exited'
      return [[session, { title, isAttached, hasEnded, others: names }]]
    }),
  )
}

/** The sessions that the page has open; notifies only on changes. */
export class OpenSessions {
  readonly #store = createStore<Sessions>({})

  get all(): Store<Sessions> {
    return this.#store
  }

  update(states: readonly KnownState[]): void {
    const next = sessionsOf(states)
    if (JSON.stringify(next) !== JSON.stringify(this.#store.get())) this.#store.set(next)
  }
}
