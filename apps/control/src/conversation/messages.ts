import type { ConversationDraft } from './draft.ts'
import type { WaitingMessage } from './frames.ts'
import { toPersisted } from './persisted-message.ts'
import type { Sender } from './snapshot.ts'

/** Messages that wait while the agent cannot be reached, or for the end of its turn. */
const MAX_QUEUED = 100
/** Most characters of these messages: the queue is stored again with each event of the agent, and sent to clients with each change. */
const MAX_QUEUED_CHARS = 256 * 1024
/** Ids of messages that are recognized when they are repeated. */
const MAX_KNOWN_IDS = 200

/** Takes a message of a person: for the agent, or to wait for the end of its turn. */
export function takeMessage(
  draft: ConversationDraft,
  {
    id,
    content,
    whenIdle = false,
  }: { readonly id: string; readonly content: string; readonly whenIdle?: boolean | undefined },
  { socket, account, name }: Sender,
): void {
  const { queue, waiting, known } = draft.state
  const refuse = (code: string, message: string): void =>
    draft.send(socket, { type: 'error', code, message, id })
  const acknowledge = (seq: number | null): void => draft.send(socket, { type: 'message_ack', id, seq })
  const earlier = known.find((each) => each.id === id)
  if (earlier !== undefined) return acknowledge(earlier.seq)
  if (waiting.some((each) => each.id === id)) return acknowledge(null)
  if (content.trim() === '') return refuse('bad_request', 'The message is empty')
  if (queue.length + waiting.length >= MAX_QUEUED || charsOf(draft) + content.length > MAX_QUEUED_CHARS)
    return refuse('rate_limited', 'Cannot store the message: too many wait already. Send it again later.')
  const message = { id, content, by: account, byName: name }
  if (!whenIdle || (!isBusy(draft) && waiting.length === 0)) return acknowledge(accept(draft, message))
  acknowledge(null)
  draft.set({ waiting: [...waiting, message] })
}

/** The turn has ended: the next waiting message begins another. */
export function releaseWaiting(draft: ConversationDraft): void {
  const { waiting, isPaused } = draft.state
  const [first, ...rest] = waiting
  if (first === undefined || isPaused || isBusy(draft)) return
  draft.set({ waiting: rest })
  accept(draft, first)
}

/** Replaces a waiting message by what `change` returns. */
export function changeWaiting(
  draft: ConversationDraft,
  id: string,
  { socket }: Sender,
  change: (message: WaitingMessage) => readonly WaitingMessage[],
): void {
  const { waiting } = draft.state
  if (waiting.some((each) => each.id === id)) {
    draft.set({ waiting: waiting.flatMap((each) => (each.id === id ? change(each) : [each])) })
    if (charsOf(draft) <= MAX_QUEUED_CHARS) return
    draft.set({ waiting })
    const tooLong = 'Cannot change the message: too much text waits already. Try it again later.'
    draft.send(socket, { type: 'error', code: 'rate_limited', message: tooLong })
    return
  }
  const message = 'Cannot change the message: the agent has it already, or it was removed'
  draft.send(socket, { type: 'error', code: 'conflict', message })
}

/** Gives the agent a waiting message during its turn. */
export function sendNow(draft: ConversationDraft, id: string, sender: Sender): void {
  const message = draft.state.waiting.find((each) => each.id === id)
  changeWaiting(draft, id, sender, () => [])
  if (message !== undefined) accept(draft, message)
}

/** Characters of all messages that wait. */
function charsOf({ state: { queue, waiting } }: ConversationDraft): number {
  const texts = [...queue.map(({ text }) => text), ...waiting.map(({ content }) => content)]
  return texts.reduce((sum, { length }) => sum + length, 0)
}

/** True until the agent has finished with every message that was accepted. */
function isBusy({ state: { queue, turn, requests, program, restore } }: ConversationDraft): boolean {
  return (
    queue.length > 0 ||
    turn !== null ||
    requests.length > 0 ||
    program.kind === 'starting' ||
    restore !== null
  )
}

/** Stores a message for the agent; returns its number. */
function accept(draft: ConversationDraft, { id, content, by, byName }: WaitingMessage): number {
  const { queue, known, labels, restore, wantsClose } = draft.state
  const seq = draft.append({ type: 'user_message', id, content, by, byName })
  draft.persist(seq, toPersisted({ kind: 'user', text: content, account: by, labels }))
  draft.set({
    isStarted: true,
    // A restore needs the program to end in any case.
    wantsClose: wantsClose && restore !== null,
    isPaused: false,
    queue: [...queue, { id, text: content, by, atMs: draft.nowMs }],
    known: [...known, { id, seq }].slice(-MAX_KNOWN_IDS),
  })
  return seq
}
