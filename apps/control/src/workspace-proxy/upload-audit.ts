import type { WorkspaceCall } from './call.ts'
import { findProxyRoute } from './routes.ts'

/** Uploads that are remembered; the least recently used is dropped, and its accounts are audited once more. */
const MAX_UPLOADS = 256

interface Chunk {
  readonly upload: string
  readonly isContinuation: boolean
}

function chunkOf({ route, id, query }: WorkspaceCall): Chunk | undefined {
  const { continues } = findProxyRoute(route) ?? {}
  if (continues === undefined) return undefined
  const parameters = new URLSearchParams(query)
  return {
    upload: JSON.stringify([id, parameters.get('path')]),
    isContinuation: (parameters.get(continues) ?? '0') !== '0',
  }
}

/**
 * Audits an upload once per account that sends chunks of it, instead of once per chunk: its first chunk, and the first one
 * of every other account.
 */
export class UploadAudit {
  readonly #accounts = new Map<string, Set<string>>()

  /** The call, without its audit action when its account already has a row for this upload. */
  withoutRepeatedAction(call: WorkspaceCall): WorkspaceCall {
    const chunk = chunkOf(call)
    const isAudited =
      chunk?.isContinuation === true && this.#accounts.get(chunk.upload)?.has(call.identity) === true
    if (!isAudited) return call
    const { action: _, ...unaudited } = call
    return unaudited
  }

  /** Records that a call succeeded, and so has its row. */
  succeeded(call: WorkspaceCall): void {
    const chunk = chunkOf(call)
    if (chunk === undefined) return
    // An upload that restarts is a new one.
    const known = chunk.isContinuation ? this.#accounts.get(chunk.upload) : undefined
    this.#accounts.delete(chunk.upload)
    this.#accounts.set(chunk.upload, new Set([...(known ?? []), call.identity]))
    const [oldest] = this.#accounts.keys()
    if (this.#accounts.size > MAX_UPLOADS && oldest !== undefined) this.#accounts.delete(oldest)
  }
}
