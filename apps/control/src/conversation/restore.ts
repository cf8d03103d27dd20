import type { ErrorCode } from '@sandwire/protocol'
import {
  addTurn,
  type Held,
  MAX_UNDO_VERSIONS,
  forgetVersion,
  type RestorePointsView,
  type RestoreTarget,
  versionOf,
} from '../run/turns.ts'
import type { ConversationDraft } from './draft.ts'
import type { ConversationSnapshot, Restore, Sender } from './snapshot.ts'

/** How long a restore is tried. */
const RESTORE_MS = 5 * 60_000

/** What clients see of restores. */
export function restorePointsOf(state: ConversationSnapshot): RestorePointsView {
  const { turns, undoVersions, restore } = state
  return { turns, canUndo: undoVersions.length > 0, isRestoring: restore !== null }
}

/** True while the agent does nothing, so that files can be restored. */
function canRestore({ queue, turn, requests, program }: ConversationSnapshot): boolean {
  const isResting = program.kind === 'none' || (program.kind === 'resting' && program.agent === 'idle')
  return isResting && queue.length === 0 && turn === null && requests.length === 0
}

/** Begins a restore: the agent's program is ended, then the files are restored. */
export function requestRestore(
  draft: ConversationDraft,
  { target, key, sender }: { readonly target: RestoreTarget; readonly key: string; readonly sender: Sender },
): void {
  const { state, nowMs } = draft
  const refuse = (code: ErrorCode, message: string): void =>
    draft.send(sender.socket, { type: 'error', code, message })
  if (state.restore !== null)
    return refuse('conflict', 'Cannot restore the files: another restore is in progress')
  if (!canRestore(state))
    return refuse('conflict', 'Cannot restore the files while the agent works: stop it first')
  const version = versionOf(state, target)
  if (version === undefined)
    return 'undo' in target
      ? refuse('conflict', 'Cannot undo: no files were restored')
      : refuse('not_found', 'Cannot restore the files: none are kept for this message')
  const message = 'undo' in target ? null : target.message
  const restore: Restore = { key, message, version, atMs: nowMs, by: sender.account, byName: sender.name }
  // The program would go on with what it knows of files that are not there any more.
  draft.set({ restore, retryMs: 0, ...(state.program.kind === 'resting' ? { wantsClose: true } : {}) })
}

/** The files were restored; `undoVersion` has the files from before. */
export function takeRestored(draft: ConversationDraft, key: string, undoVersion: number): void {
  const { restore, undoVersions } = draft.state
  if (restore?.key !== key) return
  const { message, version, by, byName } = restore
  draft.set({
    restore: null,
    undoVersions: [...undoVersions, undoVersion].slice(-MAX_UNDO_VERSIONS),
    notice: { message, isSure: true },
  })
  draft.append({ type: 'files_restored', message, version, by, byName })
}

/** Gives a restore up unless another attempt may succeed. */
export function restoreFailed(
  draft: ConversationDraft,
  {
    code,
    message,
    retryable,
  }: { readonly code: ErrorCode; readonly message: string; readonly retryable: boolean },
): void {
  const { restore, turns, undoVersions } = draft.state
  if (restore === null || (retryable && draft.nowMs < restore.atMs + RESTORE_MS)) return
  const isDeleted = code === 'not_found'
  draft.set({
    restore: null,
    // An attempt may have succeeded without a response.
    ...(retryable ? { notice: { message: restore.message, isSure: false } } : {}),
    ...(isDeleted ? forgetVersion({ turns, undoVersions }, restore.version) : {}),
  })
  draft.append({ type: 'error', code, message })
}

/** The files are kept for a message, or cannot be. */
export function takeHeld(draft: ConversationDraft, message: string, held: Held): void {
  draft.set({ turns: addTurn(draft.state.turns, { message, ...held }) })
}
