import { readdirSync, readlinkSync, statSync } from 'node:fs'

/** A file that a process holds open. */
export interface OpenFile {
  /** The same for everybody who holds it. */
  readonly key: string
  readonly device: number
  /** What it takes on disk or in memory. */
  readonly bytes: number
  /** Whether it has a name in any folder. */
  readonly isNamed: boolean
  /** Whether it is memory that `memfd_create` gave. */
  readonly isMemory: boolean
}

/** Which of them a look is for. */
export type OpenFileKind = 'memory' | 'all'

const BLOCK_BYTES = 512
const MEMORY_LINK = '/memfd:'

/** Files that a process holds open. One that hides, or is gone, has none. */
export function listOpenFiles(pid: number, kind: OpenFileKind): OpenFile[] {
  const folder = `/proc/${pid}/fd`
  try {
    return readdirSync(folder)
      .map((fd) => look(`${folder}/${fd}`, kind))
      .filter((file) => file !== undefined)
  } catch {
    // It hides its descriptors, or it ended.
    return []
  }
}

function look(link: string, kind: OpenFileKind): OpenFile | undefined {
  try {
    const isMemory = readlinkSync(link).startsWith(MEMORY_LINK)
    if (kind === 'memory' && !isMemory) return undefined
    const { dev, ino, blocks, nlink } = statSync(link)
    return {
      key: `${dev}:${ino}`,
      device: dev,
      bytes: blocks * BLOCK_BYTES,
      isNamed: nlink > 0,
      isMemory,
    }
  } catch {
    // Closed by now.
    return undefined
  }
}

/** What files take together, each counted once however many hold it. */
export function sumOnce(files: readonly OpenFile[]): number {
  return [...new Map(files.map(({ key, bytes }) => [key, bytes])).values()].reduce(
    (sum, each) => sum + each,
    0,
  )
}
