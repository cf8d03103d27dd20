import { randomBytes } from 'node:crypto'
import { lstatSync, statSync } from 'node:fs'
import { printable } from '../text/printable.ts'
import { fail, isFolder, type LocalPlace, lookFor, realFolder, type SandboxPlace } from './ends.ts'
import type { Journey } from './journey.ts'
import { localPath } from './local-path.ts'
import { endsAsFolder, hasNoName, lastName, parentOf, within } from './place.ts'
import type { RemoteStat } from './remote-workspace.ts'
import { finishUpload, sendPieces } from './send-file.ts'
import { streamSource } from './stream-source.ts'
import { measure, type Upload, uploadTree } from './upload.ts'

/** Copies from this machine to the sandbox. */
export async function send(journey: Journey, from: LocalPlace, to: SandboxPlace): Promise<void> {
  const existing = await lookFor(journey, to.path)
  const isInto = isFolder(existing)
  const folder = isInto ? to.path : parentOf(to.path)
  if (!isInto && !isFolder(await lookFor(journey, folder)))
    fail(`to "${printable(to.path)}"`, 'no such folder in the sandbox')
  if (from.is === 'stream') {
    if (isInto || endsAsFolder(to.path))
      fail(`to "${printable(to.path)}"`, 'standard input needs the name of a file')
    await sendInput(journey, within(folder, lastName(to.path) ?? ''))
    return
  }
  const upload = placeUpload(from.path, { to, isInto, folder, existing })
  if (journey.copying.isDrawn) journey.copying.expect(measure(upload))
  await uploadTree(journey, upload)
}

/** How a local path is named in the sandbox, as `cp` has it. */
function placeUpload(
  path: string,
  {
    to,
    isInto,
    folder,
    existing,
  }: { to: SandboxPlace; isInto: boolean; folder: string; existing: RemoteStat | undefined },
): Upload {
  const shown = `"${printable(path)}"`
  const followed = statSync(path, { throwIfNoEntry: false })
  const own = lstatSync(path.replace(/(?<=.)\/+$/, ''), { throwIfNoEntry: false })
  if (own === undefined) fail(shown, 'no such file')
  const isLocalFolder = followed?.isDirectory() === true
  if (isLocalFolder && existing !== undefined && !isInto)
    fail(`to "${printable(to.path)}"`, 'it is no folder')
  if (!isLocalFolder && !isInto && endsAsFolder(to.path))
    fail(`to "${printable(to.path)}"`, 'no such folder in the sandbox')
  const target = isInto ? lastName(path) : lastName(to.path)
  const name = isInto && hasNoName(path) ? undefined : target
  // A link that is named itself is followed, as is one to a folder; those inside stay links.
  const at = localPath(followed === undefined ? path : realFolder(path))
  return { at, sandbox: to.sandbox, folder, name }
}

async function sendInput(journey: Journey, path: string): Promise<void> {
  const id = randomBytes(16).toString('hex')
  const source = streamSource(Bun.stdin.stream())
  try {
    const size = await sendPieces(journey, source, { id, path, sizeBytes: Number.MAX_SAFE_INTEGER })
    await finishUpload(journey, id, { path, size })
  } catch (error) {
    // What cannot be removed now, the sandbox forgets after a day.
    await journey.remote.drop(id, path).catch(() => undefined)
    throw error
  }
}
