import { eventually } from '@sandwire/testing'
import type { AgentDeployment } from './agent-deployment.ts'

/** Generous, for a loaded machine. */
const WAIT_MS = 90_000

export type Frame = Readonly<Record<string, unknown>>

/** A page that shows a conversation of a host. */
export class ConversationBrowser implements Disposable {
  readonly frames: Frame[] = []
  readonly #socket: WebSocket

  constructor({ deployment: { host } }: AgentDeployment, query: string) {
    const { port, headers } = host
    this.#socket = new WebSocket(`ws://localhost:${port}/ws/v2?${query}`, { headers } as unknown as string[])
    this.#socket.addEventListener('message', ({ data }) =>
      this.frames.push(JSON.parse(String(data)) as Frame),
    )
  }

  send(frame: Frame): void {
    this.#socket.send(JSON.stringify(frame))
  }

  waitFor(type: string, count = 1): Promise<Frame> {
    const found = (): Frame | undefined => this.frames.filter((frame) => frame['type'] === type)[count - 1]
    return this.until(`frame ${count} of type ${type}`, found)
  }

  /** What `look` finds, once it finds something. */
  until<T>(what: string, look: () => T | undefined): Promise<T> {
    const seen = (): string => this.frames.map(({ type }) => String(type)).join(' ')
    return eventually(async () => look() ?? false, {
      what: `${what}; so far: ${seen()}`,
      timeoutMs: WAIT_MS,
      intervalMs: 50,
    })
  }

  /** Numbers of the stored frames, in the order of their arrival. */
  get seqs(): number[] {
    return this.frames.flatMap(({ type, seq }) =>
      typeof seq === 'number' && !['message_ack', 'history_end'].includes(String(type)) ? [seq] : [],
    )
  }

  /** Texts of the assistant that are stored. */
  get texts(): string[] {
    return this.frames.flatMap(({ message }) => {
      const { type, message: inner } = (message ?? {}) as { type?: string; message?: { content: Frame[] } }
      return type === 'assistant' ? (inner?.content ?? []).flatMap(({ text }) => (text as string) ?? []) : []
    })
  }

  [Symbol.dispose](): void {
    this.#socket.close()
  }
}
