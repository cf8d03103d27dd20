import { ArchiveSink, readArchive } from './archive-sink.ts'
import { insist, type Journey } from './journey.ts'
import { type Arriving, type Attributes, LocalFolder } from './local-folder.ts'
import type { LocalPath } from './local-path.ts'
import { within } from './place.ts'
import { receiveFile } from './receive-file.ts'
import type { RemoteStat } from './remote-workspace.ts'

/** A file that is cut with less than this arrived comes again as a whole. */
const WORTH_RESUMING_BYTES = 1024 * 1024

export function nanoseconds(mtimeMs: number): string {
  return String(BigInt(Math.round(mtimeMs * 1000)) * 1000n)
}

/** Copies a file of the sandbox into a folder of this machine. */
export async function downloadFile(
  journey: Journey,
  { path, known }: { readonly path: string; readonly known: RemoteStat },
  { base, name }: { readonly base: LocalPath; readonly name: string },
): Promise<void> {
  using folder = new LocalFolder(base)
  let arriving: Arriving = folder.openFile([name])
  const sink = {
    write: (bytes: Uint8Array) => arriving.write(bytes),
    restart: () => {
      arriving.discard()
      arriving = folder.openFile([name])
    },
  }
  journey.copying.at(name)
  journey.copying.expect(known.size)
  const { kind, mode, mtimeMs } = await receiveFile(journey, path, { sink, known, from: 0 })
  // What is known of a link is not the file's.
  const own = kind === 'link' ? 0o666 & ~process.umask() : mode
  arriving.commit({ mode: own, mtimeNs: nanoseconds(mtimeMs) })
  journey.copying.done()
}

/** Copies what is in a folder of the sandbox into a folder of this machine, which gets mode and time if they are given. */
export async function downloadFolder(
  journey: Journey,
  path: string,
  { base, own }: { readonly base: LocalPath; readonly own: Attributes | undefined },
): Promise<void> {
  using folder = new LocalFolder(base)
  const sink = new ArchiveSink(folder, journey.copying)
  await insist(
    journey,
    async () => {
      await resumePending(journey, path, sink)
      const answer = await journey.remote.readArchive(path, sink.last)
      await readArchive(answer.bytes(), sink)
    },
    () => sink.progress,
  )
  if (own !== undefined) folder.makeFolder([], own)
  folder.finish()
}

/** A large file that was cut goes on by itself, if it is still the same one. */
async function resumePending(journey: Journey, path: string, sink: ArchiveSink): Promise<void> {
  const { pending } = sink
  if (pending === undefined) return
  const { entry, parts, received } = pending
  if (received < WORTH_RESUMING_BYTES) {
    sink.forget()
    return
  }
  const file = within(path, parts.join('/'))
  const known = await journey.remote.stat(file)
  // The time of a file is told in whole milliseconds.
  const entryMs = Number(BigInt(entry.mtimeNs) / 1_000_000n)
  const isSame = known.size === entry.sizeBytes && Math.trunc(known.mtimeMs) === entryMs
  if (!isSame) {
    sink.forget()
    return
  }
  const changed = new Error('The file is another one now')
  const restart = (): never => {
    throw changed
  }
  try {
    await receiveFile(journey, file, {
      sink: { write: (bytes) => sink.write(bytes), restart },
      known,
      from: received,
    })
    sink.complete()
  } catch (error) {
    if (error !== changed) throw error
    sink.forget()
  }
}
