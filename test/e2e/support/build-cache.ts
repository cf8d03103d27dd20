import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { share } from './shared.ts'

/** What hosts of this process built, one folder per user. */
interface BuildCache extends AsyncDisposable {
  readonly folder: string
}

function openBuildCache(): Promise<BuildCache> {
  return share('build cache', () => {
    const folder = mkdtempSync(join(tmpdir(), 'sandwire-build-cache-'))
    return Promise.resolve({
      folder,
      [Symbol.asyncDispose]: () => Promise.resolve(rmSync(folder, { recursive: true, force: true })),
    })
  })
}

/** Copies a folder as hard links; false where that is impossible, as on another disk. */
function linkFolder(from: string, to: string): boolean {
  if (Bun.spawnSync(['cp', '-al', from, to], { stderr: 'ignore' }).success) return true
  rmSync(to, { recursive: true, force: true })
  return false
}

/**
 * Gives a new data folder what an earlier host of the same user built: the Worker, sandboxd and the files that sandboxes see.
 * A host that builds them uses twice the processor time. It compares them with their sources, so stale files are built again.
 */
export async function fillBuildCache(data: string): Promise<void> {
  const built = join((await openBuildCache()).folder, String(statSync(data).uid))
  if (existsSync(built) && readdirSync(data).length === 0) linkFolder(built, join(data, 'cache'))
}

/** Keeps what a host built for the next one. */
export async function keepBuildCache(data: string): Promise<void> {
  const built = join((await openBuildCache()).folder, String(statSync(data).uid))
  if (!existsSync(built)) linkFolder(join(data, 'cache'), built)
}
