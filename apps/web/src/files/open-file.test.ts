import { describe, expect, test } from 'bun:test'
import { ApiError } from '../api/request.ts'
import { MAX_EDIT_BYTES, MAX_OPEN_BYTES } from './file-kind.ts'
import { type FileAccess, OpenFile } from './open-file.ts'

/** A file on a server that checks versions as the real one does. */
class FakeFile implements FileAccess {
  text: string | undefined
  version = 1

  constructor(text: string | undefined) {
    this.text = text
  }

  get etag(): string {
    return `"${this.version}"`
  }

  change(text: string | undefined): void {
    this.text = text
    this.version += 1
  }

  async stat(): Promise<{ size: number; etag: string }> {
    if (this.text === undefined) throw new ApiError('file_not_found', 'no such file', 404)
    return { size: this.text.length, etag: this.etag }
  }

  async read(): Promise<{ bytes: Uint8Array; etag: string }> {
    const { etag } = await this.stat()
    return { bytes: new TextEncoder().encode(this.text), etag }
  }

  async write(text: string, condition: { etag: string } | 'new' | 'any'): Promise<string> {
    const isGood =
      condition === 'any' ||
      (condition === 'new'
        ? this.text === undefined
        : this.text !== undefined && condition.etag === this.etag)
    if (!isGood) throw new ApiError('file_changed', 'changed', 412)
    this.change(text)
    return this.etag
  }
}

async function open(text: string | undefined, path = 'a.txt'): Promise<{ disk: FakeFile; file: OpenFile }> {
  const disk = new FakeFile(text)
  const file = new OpenFile(disk, path)
  await file.load()
  return { disk, file }
}

describe('a text', () => {
  test('is read, changed and saved', async () => {
    const { disk, file } = await open('one')
    expect(file.isDirty).toBe(false)
    file.edited('two')
    expect(file.isDirty).toBe(true)
    await file.save()
    expect([disk.text, file.isDirty]).toEqual(['two', false])
  })

  test('tells when it becomes another one than the file, and the same again', async () => {
    const { file } = await open('one')
    const told: boolean[] = []
    file.dirty.subscribe((isDirty) => told.push(isDirty))
    for (const text of ['two', 'three', 'one', 'four']) file.edited(text)
    await file.save()
    file.edited('five')
    file.discard()
    expect(told).toEqual([true, false, true, false, true, false])
    expect(file.text).toBe('four')
  })

  test('that is changed while it is saved is saved again', async () => {
    const { disk, file } = await open('one')
    file.edited('two')
    const first = file.save()
    file.edited('three')
    await Promise.all([first, file.save()])
    expect([disk.text, file.isDirty]).toEqual(['three', false])
  })

  test('is taken over when it changed underneath and nothing was typed', async () => {
    const { disk, file } = await open('one')
    disk.change('theirs')
    await file.refresh()
    expect(file.state.get()).toMatchObject({ is: 'text', base: 'theirs' })
  })

  test('that was changed is not lost when the file is no longer text', async () => {
    const { disk, file } = await open('one')
    file.edited('mine')
    disk.change('\0')
    await file.refresh()
    expect(file.state.get()).toMatchObject({ is: 'text', theirs: { text: undefined } })
    expect([file.text, file.isDirty]).toEqual(['mine', true])
    const other = await open('one')
    other.file.edited('mine')
    other.disk.change('\0')
    await other.file.refresh()
    await other.file.takeTheirs()
    expect(other.file.state.get().is).toBe('binary')
    await file.keepMine()
    expect([disk.text, file.isDirty]).toEqual(['mine', false])
  })

  test('is never written over a version that was not seen', async () => {
    const { disk, file } = await open('one')
    file.edited('mine')
    disk.change('theirs')
    await file.save()
    expect(disk.text).toBe('theirs')
    expect(file.state.get()).toMatchObject({ is: 'text', base: 'one', theirs: { text: 'theirs' } })
    expect(file.isDirty).toBe(true)
  })

  test('replaces theirs once the person says so, and only the version they saw', async () => {
    const { disk, file } = await open('one')
    file.edited('mine')
    disk.change('theirs')
    await file.refresh()
    disk.change('theirs again')
    await file.keepMine()
    expect(disk.text).toBe('theirs again')
    expect(file.state.get()).toMatchObject({ theirs: { text: 'theirs again' } })
    await file.keepMine('both')
    expect(disk.text).toBe('both')
    expect(file.state.get()).toMatchObject({ is: 'text', base: 'both' })
  })

  test('gives way to theirs', async () => {
    const { disk, file } = await open('one')
    file.edited('mine')
    disk.change('theirs')
    await file.refresh()
    await file.takeTheirs()
    expect(file.state.get()).toMatchObject({ is: 'text', base: 'theirs' })
    expect(file.isDirty).toBe(false)
  })

  test('that was removed can be written again or let go', async () => {
    const { disk, file } = await open('one')
    file.edited('mine')
    disk.change(undefined)
    await file.save()
    expect(file.state.get()).toMatchObject({ theirs: 'gone' })
    await file.keepMine()
    expect(disk.text).toBe('mine')
  })

  test('that is moved by the page goes on in its new place with what was typed', async () => {
    const { disk, file } = await open('one')
    file.edited('mine')
    file.beginMove()
    const moved = new FakeFile('one')
    moved.version = 7
    disk.change(undefined)
    // The watch may tell of the move before its answer is there.
    await file.refresh()
    expect(file.state.get()).toEqual({ is: 'text', base: 'one', etag: '"1"', isSaving: false })
    await file.endMove({ access: moved, path: 'b.txt' })
    expect(file.state.get()).toEqual({ is: 'text', base: 'one', etag: '"7"', isSaving: false })
    await file.save()
    expect([moved.text, disk.text]).toEqual(['mine', undefined])
  })

  test('that could not be moved is looked for where it was', async () => {
    const { disk, file } = await open('one')
    file.beginMove()
    disk.change(undefined)
    await file.refresh()
    await file.endMove()
    expect(file.state.get()).toMatchObject({ is: 'text', theirs: 'gone' })
  })

  test('that is there again as it was is no longer said to be gone', async () => {
    const { disk, file } = await open('one')
    disk.text = undefined
    await file.refresh()
    expect(file.state.get()).toMatchObject({ theirs: 'gone' })
    disk.text = 'one'
    await file.refresh()
    expect(file.state.get()).toEqual({ is: 'text', base: 'one', etag: '"1"', isSaving: false })
  })

  test('is saved over another version that has the same text', async () => {
    const { disk, file } = await open('one')
    file.edited('mine')
    disk.change('one')
    await file.save()
    expect([disk.text, file.isDirty]).toEqual(['mine', false])
  })

  test('that changed to what is in the editor is no conflict', async () => {
    const { disk, file } = await open('one')
    file.edited('same')
    disk.change('same')
    await file.refresh()
    expect(file.state.get()).toMatchObject({ is: 'text', base: 'same' })
    expect(file.isDirty).toBe(false)
  })
})

describe('what is no text', () => {
  test('is shown as bytes or as a picture', async () => {
    expect((await open('a\0b')).file.state.get()).toMatchObject({ is: 'binary', sizeBytes: 3 })
    expect((await open('a\0b', 'x.png')).file.state.get()).toMatchObject({ is: 'image', type: 'image/png' })
  })

  test('is missing', async () => {
    expect((await open(undefined)).file.state.get()).toMatchObject({ is: 'failed', isMissing: true })
  })
})

test('a large file is asked about, a huge one is not opened', async () => {
  const { file } = await open('x'.repeat(MAX_EDIT_BYTES + 1))
  expect(file.state.get()).toMatchObject({ is: 'large', canOpen: true })
  await file.load(true)
  expect(file.state.get()).toMatchObject({ is: 'text' })
  const huge = new OpenFile(
    {
      stat: async () => ({ size: MAX_OPEN_BYTES + 1, etag: '' }),
      read: fail,
      write: fail,
    },
    'a',
  )
  await huge.load(true)
  expect(huge.state.get()).toMatchObject({ is: 'large', canOpen: false })
})

function fail(): never {
  throw new Error('not asked for')
}
