import { expect, test } from 'bun:test'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { basename, join, resolve } from 'node:path'
import {
  enableDirectIo,
  ensureDiskImage,
  ensureOwnImage,
  hasLoopDevices,
  isAttached,
  isOwnImage,
  replacedFolder,
  removeUnfinishedImage,
} from './disk-image.ts'

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

test.skipIf(!hasLoopDevices(process.getuid?.() === 0))(
  'ensureDiskImage removes what a killed mkfs left, and so does the removal of the sandbox',
  async () => {
    mkdirSync(FOLDER, { recursive: true })
    const folder = mkdtempSync(join(FOLDER, 'image-'))
    const image = join(folder, 'a.ext4')
    const interrupt = (): void => {
      mkdirSync(`${image}.unfinished/mkfs-x/content/workspace`, { recursive: true })
      writeFileSync(`${image}.unfinished/mkfs-x/image`, 'part')
    }
    try {
      interrupt()
      await ensureDiskImage(image, 4 * 1024 ** 2, { daemon: 100_000, user: 100_001, egress: 100_002 })
      expect(readdirSync(folder)).toEqual(['a.ext4'])
      interrupt()
      removeUnfinishedImage(image)
      expect(readdirSync(folder)).toEqual(['a.ext4'])
    } finally {
      rmSync(folder, { recursive: true })
    }
  },
)

test.skipIf(!hasLoopDevices(process.getuid?.() === 0))(
  'ensureOwnImage replaces an image that is damaged or not the newest, and keeps what was in its place',
  async () => {
    mkdirSync(FOLDER, { recursive: true })
    const folder = mkdtempSync(join(FOLDER, 'image-'))
    const files = { image: join(folder, 'a.ext4'), imageId: join(folder, 'sandboxes/a/image-id') }
    const sizeBytes = 4 * 1024 ** 2
    const ensure = (): Promise<void> =>
      ensureOwnImage(files, sizeBytes, { daemon: 100_000, user: 100_001, egress: 100_002 })
    const replaced = (): number => readdirSync(replacedFolder(files.image)).length
    try {
      expect(isOwnImage(files)).toBe(false)
      await ensure()
      expect(isOwnImage(files)).toBe(true)
      // As when the disk with the image is not mounted, and is mounted again later.
      const earlier = join(folder, 'earlier')
      renameSync(files.image, earlier)
      await ensure()
      expect(isOwnImage(files)).toBe(true)
      renameSync(earlier, files.image)
      expect(isOwnImage(files)).toBe(false)
      await ensure()
      expect([isOwnImage(files), replaced()]).toEqual([true, 1])
      for (const [times, bytes] of [0, 1024 ** 2].entries()) {
        truncateSync(files.image, bytes)
        expect(isOwnImage(files)).toBe(false)
        await ensure()
        expect([isOwnImage(files), replaced()]).toEqual([true, times + 2])
      }
      // As after the folder of the sandbox was lost.
      rmSync(files.imageId)
      await ensure()
      expect([isOwnImage(files), replaced()]).toEqual([true, 3])
    } finally {
      rmSync(folder, { recursive: true })
    }
  },
)
