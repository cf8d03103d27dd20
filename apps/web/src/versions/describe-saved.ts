import type { SavedState } from '../api/sandboxes.ts'
import type { Version } from '../api/versions.ts'
import { formatRelativeTime } from '../shell/format-time.ts'
import { versionTexts } from '../texts/versions.ts'

const { status: texts } = versionTexts
const MINUTE_MS = 60_000

function formatAgo(atMs: number, nowMs: number): string {
  const ms = Math.max(0, nowMs - atMs)
  if (ms < 1_000) return texts.now
  return ms < MINUTE_MS ? texts.secondsAgo(Math.floor(ms / 1_000)) : formatRelativeTime(atMs, nowMs)
}

/** The text of the status bar; undefined when there is nothing to say. */
export function describeSaved(
  { state, savedMs, error }: Omit<SavedState, 'restored'>,
  nowMs: number,
): string | undefined {
  if (error !== null) return texts.notSaved(texts.problems[error] ?? error)
  switch (state) {
    case 'idle':
      return savedMs === null ? undefined : texts.saved(formatAgo(savedMs, nowMs))
    case 'pending':
    case 'syncing':
    case 'flushing':
    case 'retrying':
    case 'error':
      return texts.saving
  }
}

/** The name of a version, or its number. */
export function nameOf({ name, version }: Pick<Version, 'name' | 'version'>): string {
  return name ?? versionTexts.name(version)
}
