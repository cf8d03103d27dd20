import { chmodSync, mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

async function run(...argv: string[]): Promise<void> {
  const child = Bun.spawn(argv, { stdio: ['ignore', 'ignore', 'pipe'] })
  const problem = await new Response(child.stderr).text()
  if ((await child.exited) !== 0) throw new Error(`Cannot run ${argv[0] ?? ''}: ${problem}`)
}

/** A file system of its own, on a loop device. Needs root. */
export interface LoopDisk extends AsyncDisposable {
  readonly folder: string
}

export async function openLoopDisk(bytes: number): Promise<LoopDisk> {
  const base = mkdtempSync(join(tmpdir(), 'sandwire-disk-'))
  // Tests as another user enter it.
  chmodSync(base, 0o755)
  const image = join(base, 'image')
  const folder = join(base, 'data')
  writeFileSync(image, '')
  truncateSync(image, bytes)
  mkdirSync(folder)
  await run('mkfs.ext4', '-q', '-F', '-m', '0', '-E', 'nodiscard', image)
  await run('mount', '-o', 'loop,discard', image, folder)
  return {
    folder,
    [Symbol.asyncDispose]: async () => {
      await run('umount', '--lazy', folder)
      rmSync(base, { recursive: true, force: true })
    },
  }
}
