import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { enableDirectIo, hasLoopDevices, isAttached } from './disk-image.ts'

// Not in the temporary folder, which may be a tmpfs: that does not support direct I/O.
const FOLDER = resolve(import.meta.dir, '../../../../.cache')

test.skipIf(!hasLoopDevices(process.getuid?.() === 0))(
  'enableDirectIo makes the loop device of an image bypass the page cache',
  async () => {
    mkdirSync(FOLDER, { recursive: true })
    const folder = mkdtempSync(join(FOLDER, 'loop-'))
    const file = join(folder, 'image')
    writeFileSync(file, '')
    truncateSync(file, 1024 * 1024)
    expect(isAttached(file)).toBe(false)
    const device = Bun.spawnSync(['losetup', '--find', '--show', file]).stdout.toString().trim()
    try {
      expect(isAttached(file)).toBe(true)
      const isDirect = () => readFileSync(`/sys/block/${basename(device)}/loop/dio`, 'utf8').trim()
      expect(isDirect()).toBe('0')
      await enableDirectIo(file)
      expect(isDirect()).toBe('1')
    } finally {
      Bun.spawnSync(['losetup', '--detach', device])
      rmSync(folder, { recursive: true })
    }
    await enableDirectIo(file)
  },
)
