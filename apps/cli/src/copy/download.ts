import { mkdirSync, type Stats, statSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { ArchiveSink, readArchive } from './archive-sink.ts'
import { createStreamWriter, findTarget, openStream } from './local-target.ts'
import {
  namesFolder,
  fail,
  isFolder,
  baseName,
  type LocalLocation,
  statRemote,
  realFolder,
  type SandboxLocation,
  within,
} from './location.ts'
import { retryTransfer, type Transfer } from './transfer.ts'
import { type PendingFile, type Attributes, LocalFolder } from './local-folder.ts'
import { joinLocalPath, toLocalPath, type LocalPath } from './local-entries.ts'
import { type FileSink, receiveFile } from './receive-file.ts'
import type { RemoteStat } from './remote-workspace.ts'
import { printable } from '../text/printable.ts'

/** Copies from the sandbox to this machine. */
export async function download(transfer: Transfer, from: SandboxLocation, to: LocalLocation): Promise<void> {
  const shown = `"${printable(from.path)}"`
  const stat = (await statRemote(transfer, from.path)) ?? fail(shown, 'no such file in the sandbox')
  if (to.kind === 'stream') {
    if (isFolder(stat)) fail(shown, 'a folder cannot be copied to stdout')
    await downloadToStream(
      transfer,
      { path: from.path, stat },
      createStreamWriter(1, 'stdout', transfer.signal),
    )
    return
  }
  const existing = statSync(to.path, { throwIfNoEntry: false })
  if (isFolder(stat)) await downloadFolderTo(transfer, { path: from.path, stat }, { path: to.path, existing })
  else await downloadFileTo(transfer, { path: from.path, stat }, { path: to.path, existing })
}

interface Found {
  readonly path: string
  readonly stat: RemoteStat
}

interface Target {
  readonly path: string
  readonly existing: Stats | undefined
}

async function downloadFileTo(transfer: Transfer, found: Found, { path, existing }: Target): Promise<void> {
  const intoFolder = existing?.isDirectory() === true
  if (namesFolder(path) && !intoFolder) fail(`to "${printable(path)}"`, 'no such folder')
  const base = toLocalPath(realFolder(intoFolder ? path : dirname(path)))
  const name = (intoFolder ? baseName(found.path) : basename(path)) ?? 'file'
  // Checked before anything is copied.
  const target = findTarget(base, name)
  if (target.kind === 'file') {
    await downloadFile(transfer, found, target)
    return
  }
  using opened = await openStream(target, transfer.signal)
  transfer.report.startEntry(name)
  await downloadToStream(
    transfer,
    found,
    createStreamWriter(opened.fd, `"${printable(path)}"`, transfer.signal),
  )
}

async function downloadFolderTo(transfer: Transfer, { path, stat }: Found, target: Target): Promise<void> {
  const { existing } = target
  if (existing !== undefined && !existing.isDirectory())
    fail(`to "${printable(target.path)}"`, 'it is not a folder')
  if (existing === undefined) {
    realFolder(dirname(target.path))
    mkdirSync(target.path)
  }
  const base = toLocalPath(realFolder(target.path))
  const name = existing === undefined ? undefined : baseName(path)
  const own = { mode: stat.mode, mtimeNs: nanoseconds(stat.mtimeMs) }
  if (name === undefined) {
    await downloadFolder(transfer, path, { base, own: existing === undefined ? own : undefined })
    return
  }
  using folder = new LocalFolder(base)
  folder.makeFolder([name], own)
  await downloadFolder(transfer, path, { base: joinLocalPath(base, name), own })
}

/** Copies to a stream that cannot be rewound. */
async function downloadToStream(transfer: Transfer, { path, stat }: Found, sink: FileSink): Promise<void> {
  transfer.report.setTotal(stat.size)
  await receiveFile(transfer, path, { expected: stat, from: 0, sink })
  transfer.report.addEntries()
}

/** Smaller partial files are received again from the start. */
const MIN_RESUME_BYTES = 1024 * 1024

function nanoseconds(mtimeMs: number): string {
  return String(BigInt(Math.round(mtimeMs * 1000)) * 1000n)
}

/** Copies a file of the sandbox into a folder of this machine. */
async function downloadFile(
  transfer: Transfer,
  { path, stat }: { readonly path: string; readonly stat: RemoteStat },
  { base, name }: { readonly base: LocalPath; readonly name: string },
): Promise<void> {
  using folder = new LocalFolder(base)
  let pendingFile: PendingFile = folder.openFile([name])
  const sink = {
    write: (bytes: Uint8Array) => pendingFile.write(bytes),
    restart: () => {
      pendingFile.discard()
      pendingFile = folder.openFile([name])
    },
  }
  transfer.report.startEntry(name)
  transfer.report.setTotal(stat.size)
  const { kind, mode, mtimeMs } = await receiveFile(transfer, path, { sink, expected: stat, from: 0 })
  // The mode of a link is not the mode of its file.
  const own = kind === 'link' ? 0o666 & ~process.umask() : mode
  pendingFile.commit({ mode: own, mtimeNs: nanoseconds(mtimeMs) })
  transfer.report.addEntries()
}

/** Copies the contents of a sandbox folder into a local folder, and sets its attributes if given. */
async function downloadFolder(
  transfer: Transfer,
  path: string,
  { base, own }: { readonly base: LocalPath; readonly own: Attributes | undefined },
): Promise<void> {
  using folder = new LocalFolder(base)
  const sink = new ArchiveSink(folder, transfer.report)
  await retryTransfer(
    transfer,
    async () => {
      await resumePending(transfer, path, sink)
      const response = await transfer.remote.readArchive(path, sink.last)
      await readArchive(response.bytes(), sink)
    },
    () => sink.progress,
  )
  if (own !== undefined) folder.makeFolder([], own)
  folder.finish()
}

/** Resumes a large pending file, if it is still the same version. */
async function resumePending(transfer: Transfer, path: string, sink: ArchiveSink): Promise<void> {
  const { pending } = sink
  if (pending === undefined) return
  const { entry, parts, received } = pending
  if (received < MIN_RESUME_BYTES) {
    sink.discardPending()
    return
  }
  const file = within(path, parts.join('/'))
  const stat = await transfer.remote.stat(file)
  // Times are sent in whole milliseconds.
  const entryMs = Number(BigInt(entry.mtimeNs) / 1_000_000n)
  const isSame = stat.size === entry.sizeBytes && Math.trunc(stat.mtimeMs) === entryMs
  if (!isSame) {
    sink.discardPending()
    return
  }
  const changed = new Error('The file changed')
  const restart = (): never => {
    throw changed
  }
  try {
    await receiveFile(transfer, file, {
      sink: { write: (bytes) => sink.write(bytes), restart },
      expected: stat,
      from: received,
    })
    sink.complete()
  } catch (error) {
    if (error !== changed) throw error
    sink.discardPending()
  }
}
