import { findRoute } from '../gateway/table.ts'
import type { WorkspaceCall } from './workspace-call.ts'

/** Uploads that are remembered; the longest untouched one is forgotten, and who goes on with it has a row once more. */
const MAX_UPLOADS = 256

/** A piece of an upload. */
interface Piece {
  readonly upload: string
  /** It goes on with what is there. */
  readonly isMore: boolean
}

function pieceOf({ route, id, query }: WorkspaceCall): Piece | undefined {
  const { continues } = findRoute(route) ?? {}
  if (continues === undefined) return undefined
  const parameters = new URLSearchParams(query)
  return {
    upload: JSON.stringify([id, parameters.get('path')]),
    isMore: (parameters.get(continues) ?? '0') !== '0',
  }
}

/**
 * Who has a row in the audit for which upload. A large file comes in many pieces, and is one deed of each who sent some: its
 * beginning is written down, and the first piece of everybody else.
 */
export class UploadWriters {
  readonly #writers = new Map<string, Set<string>>()

  /** The call as the audit is to see it: without a name where it only goes on with what its caller has a row for. */
  name(call: WorkspaceCall): WorkspaceCall {
    const piece = pieceOf(call)
    const hasRow = piece?.isMore === true && this.#writers.get(piece.upload)?.has(call.identity) === true
    if (!hasRow) return call
    const { action: _, ...unnamed } = call
    return unnamed
  }

  /** A call was answered well, and has its row if it had a name. */
  done(call: WorkspaceCall): void {
    const piece = pieceOf(call)
    if (piece === undefined) return
    // What begins anew is another deed.
    const before = piece.isMore ? this.#writers.get(piece.upload) : undefined
    this.#writers.delete(piece.upload)
    this.#writers.set(piece.upload, new Set([...(before ?? []), call.identity]))
    const [oldest] = this.#writers.keys()
    if (this.#writers.size > MAX_UPLOADS && oldest !== undefined) this.#writers.delete(oldest)
  }
}
