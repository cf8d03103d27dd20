import { createStore, type Store } from '@sandwire/client'
import { type Conversation, listConversations } from '../api/conversations.ts'
import { listRuns, type Run } from '../api/runs.ts'
import type { View } from '../layout/layout.ts'
import { type Loaded, messageOf } from '../state/workbench.ts'

const REFRESH_MS = 4_000
/** While nothing works: another page or device may begin something. */
const IDLE_REFRESH_MS = 30_000
const IN_TURN: ReadonlySet<Conversation['state']> = new Set(['starting', 'working', 'awaiting'])

/** A run or a conversation. */
export type AgentItem =
  | { readonly kind: 'run'; readonly run: Run }
  | { readonly kind: 'conversation'; readonly conversation: Conversation }

export function idOf(item: AgentItem): string {
  return item.kind === 'run' ? item.run.id : item.conversation.id
}

/** What a person asked for. */
export function textOf(item: AgentItem): string {
  return item.kind === 'run' ? item.run.task : item.conversation.title
}

/** When it was created or last used. */
export function atMsOf(item: AgentItem): number {
  return item.kind === 'run' ? item.run.createdMs : item.conversation.usedMs
}

function isWaiting(item: AgentItem): boolean {
  return (item.kind === 'run' ? item.run : item.conversation).state === 'awaiting'
}

export function isShownBy(item: AgentItem, view: View | undefined): boolean {
  if (item.kind === 'run') return view?.kind === 'run' && view.run === item.run.id
  return view?.kind === 'conversation' && view.conversation === item.conversation.id
}

function isWorking(item: AgentItem): boolean {
  if (item.kind === 'run') return item.run.state !== 'ended'
  const { state } = item.conversation
  return state !== 'idle' && state !== 'new'
}

/** True for a conversation whose agent is in a turn. Runs wait for messages as `awaiting`. */
function isInTurn(item: AgentItem): boolean {
  return item.kind === 'conversation' && IN_TURN.has(item.conversation.state)
}

/** Those that wait for a person, and did not in an earlier list: for an answer, or for the next message. */
export function newlyWaiting(before: readonly AgentItem[], now: readonly AgentItem[]): readonly AgentItem[] {
  const waiting = new Set(before.filter(isWaiting).map(idOf))
  const inTurn = new Set(before.filter(isInTurn).map(idOf))
  return now.filter((item) => {
    if (isWaiting(item)) return !waiting.has(idOf(item))
    const isIdle = item.kind === 'conversation' && item.conversation.state === 'idle'
    return isIdle && inTurn.has(idOf(item))
  })
}

/** The account's runs and conversations, last used first. */
export class AgentList {
  readonly #all = createStore<Loaded<readonly AgentItem[]>>({ kind: 'loading' })
  readonly #onWaiting: (item: AgentItem) => void
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(onWaiting: (item: AgentItem) => void) {
    this.#onWaiting = onWaiting
  }

  get all(): Store<Loaded<readonly AgentItem[]>> {
    return this.#all
  }

  /** Reads the list now, and regularly from then on. */
  async refresh(): Promise<void> {
    clearTimeout(this.#timer)
    const before = this.#all.get()
    try {
      const [runs, conversations] = await Promise.all([listRuns(), listConversations()])
      const value = [
        ...runs.map((run) => ({ kind: 'run', run }) as const),
        ...conversations.map((conversation) => ({ kind: 'conversation', conversation }) as const),
      ].sort((one, other) => atMsOf(other) - atMsOf(one))
      this.#all.set({ kind: 'ready', value })
      if (before.kind === 'ready') for (const item of newlyWaiting(before.value, value)) this.#onWaiting(item)
    } catch (caught) {
      if (before.kind !== 'ready') this.#all.set({ kind: 'failed', message: messageOf(caught) })
    }
    const all = this.#all.get()
    clearTimeout(this.#timer)
    if (all.kind !== 'ready') return
    const waitMs = all.value.some(isWorking) ? REFRESH_MS : IDLE_REFRESH_MS
    this.#timer = setTimeout(() => void this.refresh(), waitMs)
  }
}
