import { mkdirSync, type Stats, statSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { printable } from '../text/printable.ts'
import { byteSink, openSink } from './byte-sink.ts'
import { downloadFile, downloadFolder, nanoseconds } from './download.ts'
import { fail, isFolder, type LocalPlace, lookFor, realFolder, type SandboxPlace } from './ends.ts'
import type { Journey } from './journey.ts'
import { LocalFolder } from './local-folder.ts'
import { inside, localPath } from './local-path.ts'
import { findTarget } from './named-target.ts'
import { endsAsFolder, lastName } from './place.ts'
import { type FileSink, receiveFile } from './receive-file.ts'
import type { RemoteStat } from './remote-workspace.ts'

/** Copies from the sandbox to this machine. */
export async function bring(journey: Journey, from: SandboxPlace, to: LocalPlace): Promise<void> {
  const shown = `"${printable(from.path)}"`
  const known = (await lookFor(journey, from.path)) ?? fail(shown, 'no such file in the sandbox')
  if (to.is === 'stream') {
    if (isFolder(known)) fail(shown, 'a folder does not go to standard output')
    await bringInto(journey, { path: from.path, known }, byteSink(1, 'stdout', journey.signal))
    return
  }
  const existing = statSync(to.path, { throwIfNoEntry: false })
  if (isFolder(known)) await bringFolder(journey, { path: from.path, known }, { path: to.path, existing })
  else await bringFile(journey, { path: from.path, known }, { path: to.path, existing })
}

interface Found {
  readonly path: string
  readonly known: RemoteStat
}

interface Target {
  readonly path: string
  readonly existing: Stats | undefined
}

async function bringFile(journey: Journey, found: Found, { path, existing }: Target): Promise<void> {
  const isInto = existing?.isDirectory() === true
  if (endsAsFolder(path) && !isInto) fail(`to "${printable(path)}"`, 'no such folder')
  const base = localPath(realFolder(isInto ? path : dirname(path)))
  const name = (isInto ? lastName(found.path) : basename(path)) ?? 'file'
  // Looked at before anything is copied.
  const target = findTarget(base, name)
  if (target.is === 'file') {
    await downloadFile(journey, found, target)
    return
  }
  using opened = await openSink(target, journey.signal)
  journey.copying.at(name)
  await bringInto(journey, found, byteSink(opened.fd, `"${printable(path)}"`, journey.signal))
}

async function bringFolder(journey: Journey, { path, known }: Found, target: Target): Promise<void> {
  const { existing } = target
  if (existing !== undefined && !existing.isDirectory())
    fail(`to "${printable(target.path)}"`, 'it is no folder')
  if (existing === undefined) {
    realFolder(dirname(target.path))
    mkdirSync(target.path)
  }
  const base = localPath(realFolder(target.path))
  const name = existing === undefined ? undefined : lastName(path)
  const own = { mode: known.mode, mtimeNs: nanoseconds(known.mtimeMs) }
  if (name === undefined) {
    await downloadFolder(journey, path, { base, own: existing === undefined ? own : undefined })
    return
  }
  using folder = new LocalFolder(base)
  folder.makeFolder([name], own)
  await downloadFolder(journey, path, { base: inside(base, name), own })
}

/** Copies to where bytes go and do not come back from. */
async function bringInto(journey: Journey, { path, known }: Found, sink: FileSink): Promise<void> {
  journey.copying.expect(known.size)
  await receiveFile(journey, path, { known, from: 0, sink })
  journey.copying.done()
}
