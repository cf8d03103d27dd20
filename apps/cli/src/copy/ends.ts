import { realpathSync } from 'node:fs'
import { SandwireError } from '@sandwire/protocol'
import { AdvisedError } from '../errors/advised-error.ts'
import { printable } from '../text/printable.ts'
import { insist, type Journey } from './journey.ts'
import { whyOf } from './local-tree.ts'
import type { Place } from './place.ts'
import type { RemoteStat } from './remote-workspace.ts'

export type SandboxPlace = Extract<Place, { is: 'sandbox' }>
export type LocalPlace = Exclude<Place, SandboxPlace>

/** What is at a path of the sandbox; undefined when nothing is. */
export async function lookFor(journey: Journey, path: string): Promise<RemoteStat | undefined> {
  try {
    return await insist(
      journey,
      () => journey.remote.stat(path),
      () => 0,
    )
  } catch (error) {
    if (SandwireError.from(error).code === 'file_not_found') return undefined
    throw error
  }
}

export function isFolder(stat: RemoteStat | undefined): boolean {
  return stat?.kind === 'folder' || (stat?.kind === 'link' && stat.target === 'folder')
}

/** Says why a copy cannot begin. */
export function fail(what: string, why: string): never {
  throw new AdvisedError('bad_request', `Cannot copy ${what}: ${why}`, 'sbx-stdio cp --help')
}

/** Where a local folder really is: what is typed here may lead through links. */
export function realFolder(path: string): string {
  try {
    return realpathSync(path)
  } catch (error) {
    return fail(`to "${printable(path)}"`, whyOf(error))
  }
}
