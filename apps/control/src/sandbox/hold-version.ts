import { withTimeout } from '@sandwire/async'
import { SandwireError } from '@sandwire/protocol'
import type { Held } from '../run/turns.ts'
import type { FileVersions } from './file-versions.ts'
import type { SandboxLifecycle } from './lifecycle.ts'

/** Files that are to be kept for a message of a conversation or run. */
export interface Hold {
  /** The conversation or run. */
  readonly holder: string
  /** Other versions that it keeps. */
  readonly kept: readonly number[]
  /** How long the message may wait. */
  readonly waitMs: number
}

const tooLate = (): SandwireError => new SandwireError('timed_out', 'The files were not saved in time')

/** Saves the files and keeps the version, or says why that is not possible. Starts a stopped sandbox. */
export async function holdVersion(
  { lifecycle, files }: { readonly lifecycle: SandboxLifecycle; readonly files: FileVersions },
  { holder, kept, waitMs }: Hold,
): Promise<Held> {
  if (!files.isEnabled) return { version: null, problem: 'no_store' }
  await lifecycle.start(crypto.randomUUID())
  // A store that does not work would delay every message.
  const { error } = files.saved
  if (error !== null) return { version: null, problem: error }
  try {
    const { number } = await withTimeout(files.hold(holder, { kept, pause: 'periodic' }), waitMs, tooLate)
    return { version: number, problem: null }
  } catch (caught) {
    return { version: null, problem: SandwireError.from(caught).code }
  }
}
