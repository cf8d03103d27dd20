import type { Usage } from './event.ts'
import { type Json, numberAt } from './json.ts'

interface MessageUsage {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cacheReadTokens: number
  readonly cacheWriteTokens: number
}

const NOTHING: MessageUsage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }

/** Adds up the tokens of the model's messages. Each message is counted once, with the largest numbers reported for it. */
export class UsageTotal {
  #turns = 0
  #sum = NOTHING
  #costUsd: number | null = null
  /** The message that is being written, per conversation; the main one has the key ''. */
  readonly #current = new Map<string, { readonly id: string; readonly usage: MessageUsage }>()

  get total(): Usage {
    return { turns: this.#turns, ...this.#sum, costUsd: this.#costUsd }
  }

  get turns(): number {
    return this.#turns
  }

  /** Usage of a message by the API's field names. `conversation` is the subagent, or empty. */
  message(conversation: string, id: string, reported: Json | undefined): void {
    const current = this.#current.get(conversation)
    const old = current?.id === id ? current.usage : NOTHING
    if (current?.id !== id && conversation === '') this.#turns += 1
    const usage = largest(old, readUsage(reported))
    this.#sum = combine(
      this.#sum,
      combine(usage, old, (a, b) => a - b),
      (a, b) => a + b,
    )
    this.#current.set(conversation, { id, usage })
  }

  cost(usd: number): void {
    this.#costUsd = Math.max(this.#costUsd ?? 0, usd)
  }

  /** Id of the message that is being written. */
  currentId(conversation: string): string | undefined {
    return this.#current.get(conversation)?.id
  }
}

function readUsage(reported: Json | undefined): MessageUsage {
  return {
    inputTokens: numberAt(reported, 'input_tokens') ?? 0,
    outputTokens: numberAt(reported, 'output_tokens') ?? 0,
    cacheReadTokens: numberAt(reported, 'cache_read_input_tokens') ?? 0,
    cacheWriteTokens: numberAt(reported, 'cache_creation_input_tokens') ?? 0,
  }
}

function combine(a: MessageUsage, b: MessageUsage, join: (a: number, b: number) => number): MessageUsage {
  return {
    inputTokens: join(a.inputTokens, b.inputTokens),
    outputTokens: join(a.outputTokens, b.outputTokens),
    cacheReadTokens: join(a.cacheReadTokens, b.cacheReadTokens),
    cacheWriteTokens: join(a.cacheWriteTokens, b.cacheWriteTokens),
  }
}

const largest = (a: MessageUsage, b: MessageUsage): MessageUsage => combine(a, b, Math.max)
