import { SandwireError } from '@sandwire/protocol'
import type { AgentMessage, MessageView } from './api.ts'
import type { MessageReceipt } from './event.ts'
import type { Json } from './json.ts'

/** Messages of people in one run. */
const MAX_MESSAGES = 1_000

export interface SentMessage extends AgentMessage {
  /** Blocks that are sent in place of the text. */
  readonly content?: readonly Json[]
  /** Id of the message in the program. */
  readonly uuid: string
  readonly receipt: MessageReceipt
}

/** Messages that people sent to an agent, each once, with their receipts. */
export class Messages {
  readonly #sent = new Map<string, SentMessage>()

  /** True when the message was sent before. Throws when its id was used for another text. */
  isKnown({ id, text }: AgentMessage): boolean {
    const known = this.#sent.get(id)
    if (known === undefined) return false
    if (known.text === text) return true
    throw new SandwireError('conflict', 'Cannot send the message: its id was used for another text')
  }

  add({ id, text, by, content }: AgentMessage & Pick<SentMessage, 'content'>, uuid: string): SentMessage {
    if (this.#sent.size >= MAX_MESSAGES)
      throw new SandwireError('rate_limited', 'Cannot send the message: the run has too many')
    const message: SentMessage = {
      id,
      text,
      by,
      ...(content === undefined ? {} : { content }),
      uuid,
      receipt: 'queued',
    }
    this.#sent.set(id, message)
    return message
  }

  get hasOpen(): boolean {
    return this.open.length > 0
  }

  /** Sets the receipt of the open messages that match; returns those that changed. */
  settle(receipt: MessageReceipt, matches: (message: SentMessage) => boolean): readonly SentMessage[] {
    return this.open
      .filter((message) => message.receipt !== receipt && matches(message))
      .map((message) => {
        const settled = { ...message, receipt }
        this.#sent.set(message.id, settled)
        return settled
      })
  }

  view(id: string): MessageView | undefined {
    const message = this.#sent.get(id)
    return message === undefined ? undefined : { id, receipt: message.receipt }
  }

  /** Messages that the agent has not finished with, in order. */
  get open(): readonly SentMessage[] {
    return [...this.#sent.values()].filter(({ receipt }) => receipt === 'queued' || receipt === 'started')
  }
}
