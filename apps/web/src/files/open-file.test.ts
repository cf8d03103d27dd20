import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { FileText } from '../editor/file-text.ts'
import { MAX_EDIT_BYTES, MAX_OPEN_BYTES } from './file-kind.ts'
import { accessTo, OpenFile } from './open-file.ts'

function refuse(status: number, code: string): Response {
  return Response.json({ error: { code, message: code } }, { status })
}

/** A file on a server with the real version checks, which responds when the test allows it. */
class FakeFile {
  text: string | undefined
  /** Why there is no file. */
  refusal = 'file_not_found'
  version = 1
  reads = 0
  writes = 0
  /** Held responses, by method and last path segment. */
  readonly waits = new Map<string, Promise<void>>()

  constructor(text: string | undefined) {
    this.text = text
  }

  get etag(): string {
    return `3.7-${this.version}`
  }

  change(text: string | undefined): void {
    this.text = text
    this.version += 1
  }

  /** Holds responses, with the state at the time of the request, until the returned function is called. */
  holdBack(what: 'GET stat' | 'GET file' | 'PUT file'): () => void {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.waits.set(what, promise)
    return () => {
      this.waits.delete(what)
      resolve()
    }
  }

  async answer(method: string, tail: string, init: RequestInit | undefined): Promise<Response> {
    const response = this.#answer(method, tail, init)
    await this.waits.get(`${method} ${tail}`)
    return response
  }

  #answer(method: string, tail: string, init: RequestInit | undefined): Response {
    if (method === 'PUT') return this.#write(new Headers(init?.headers), init?.body as string)
    const isOther = this.refusal !== 'file_not_found'
    if (tail === 'stat' && (isOther || this.text !== undefined))
      return Response.json({ size: this.text?.length ?? 4096, etag: this.etag })
    if (this.text === undefined) return refuse(isOther ? 400 : 404, this.refusal)
    this.reads += 1
    return this.read(this.text)
  }

  read(text: string): Response {
    return new Response(text, { headers: { etag: `"${this.etag}"` } })
  }

  #write(headers: Headers, text: string): Response {
    this.writes += 1
    const [match, isNew] = [headers.get('if-match'), headers.get('if-none-match') === '*']
    if (this.text === undefined && this.refusal !== 'file_not_found') return refuse(400, this.refusal)
    const isGood = isNew ? this.text === undefined : this.text !== undefined && match === `"${this.etag}"`
    if (!isGood) return refuse(412, 'file_changed')
    this.change(text)
    return Response.json({ etag: this.etag })
  }
}

const files = new Map<string, FakeFile>()
const { fetch: realFetch } = globalThis

beforeEach(() => {
  const fake = async (address: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const { pathname, searchParams } = new URL(
      address instanceof Request ? address.url : address,
      'http://localhost',
    )
    const file = files.get(searchParams.get('path') ?? '')
    return (
      file?.answer(init?.method ?? 'GET', pathname.split('/').pop() ?? '', init) ?? refuse(404, 'unknown')
    )
  }
  globalThis.fetch = Object.assign(fake, { preconnect: realFetch.preconnect })
})

afterEach(() => {
  globalThis.fetch = realFetch
  files.clear()
})

function put(path: string, text: string | undefined): FakeFile {
  const disk = new FakeFile(text)
  files.set(path, disk)
  return disk
}

async function open(text: string | undefined, path = 'a.txt'): Promise<{ disk: FakeFile; file: OpenFile }> {
  const disk = put(path, text)
  const file = new OpenFile(accessTo('s', path), path)
  await file.load()
  return { disk, file }
}

function type(file: OpenFile, text: string): void {
  file.edited(FileText.of(text))
}

/** The state of a file, with texts as strings. */
function known(file: OpenFile): Record<string, unknown> {
  const state = file.state.get()
  if (state.kind !== 'text') return { ...state }
  const { base, theirs, ...rest } = state
  if (theirs === undefined) return { ...rest, base: base.toString() }
  const shown = typeof theirs === 'string' ? theirs : { ...theirs, text: theirs.text?.toString() }
  return { ...rest, base: base.toString(), theirs: shown }
}

/** Waits until all responses are processed. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await Promise.resolve()
}

describe('a text', () => {
  test('is read, edited and saved', async () => {
    const { disk, file } = await open('one')
    expect(file.isDirty).toBe(false)
    type(file, 'two')
    expect(file.isDirty).toBe(true)
    await file.save()
    expect([disk.text, file.isDirty]).toEqual(['two', false])
  })

  test('reports when it starts and stops to differ from the file', async () => {
    const { file } = await open('one')
    const reported: boolean[] = []
    file.dirty.subscribe((isDirty) => reported.push(isDirty))
    for (const text of ['two', 'three', 'one', 'four']) type(file, text)
    await file.save()
    type(file, 'five')
    file.discard()
    expect(reported).toEqual([true, false, true, false, true, false])
    expect(file.text.toString()).toBe('four')
  })

  test('edited during a save is saved again', async () => {
    const { disk, file } = await open('one')
    type(file, 'two')
    const first = file.save()
    type(file, 'three')
    await Promise.all([first, file.save()])
    expect([disk.text, file.isDirty]).toEqual(['three', false])
  })

  test('is replaced when the file changed and nothing was typed', async () => {
    const { disk, file } = await open('one')
    disk.change('theirs')
    await file.refresh()
    expect(known(file)).toMatchObject({ kind: 'text', base: 'theirs' })
  })

  test('with unsaved changes survives when the file is no longer text', async () => {
    const { disk, file } = await open('one')
    type(file, 'mine')
    disk.change('\0')
    await file.refresh()
    expect(known(file)).toMatchObject({ kind: 'text', theirs: { text: undefined } })
    expect([file.text.toString(), file.isDirty]).toEqual(['mine', true])
    const other = await open('one', 'b.txt')
    type(other.file, 'mine')
    other.disk.change('\0')
    await other.file.refresh()
    await other.file.takeTheirs()
    expect(known(other.file)['kind']).toBe('binary')
    await file.keepMine()
    expect([disk.text, file.isDirty]).toEqual(['mine', false])
  })

  test('never overwrites a version that was not seen', async () => {
    const { disk, file } = await open('one')
    type(file, 'mine')
    disk.change('theirs')
    await file.save()
    expect(disk.text).toBe('theirs')
    expect(known(file)).toMatchObject({ kind: 'text', base: 'one', theirs: { text: 'theirs' } })
    expect(file.isDirty).toBe(true)
  })

  test('replaces the version on disk that the user saw, on request', async () => {
    const { disk, file } = await open('one')
    type(file, 'mine')
    disk.change('theirs')
    await file.refresh()
    disk.change('theirs again')
    await file.keepMine()
    expect(disk.text).toBe('theirs again')
    expect(known(file)).toMatchObject({ theirs: { text: 'theirs again' } })
    type(file, 'both')
    await file.keepMine()
    expect(disk.text).toBe('both')
    expect(known(file)).toMatchObject({ kind: 'text', base: 'both' })
  })

  test('gives way to the version on disk', async () => {
    const { disk, file } = await open('one')
    type(file, 'mine')
    disk.change('theirs')
    await file.refresh()
    await file.takeTheirs()
    expect(known(file)).toMatchObject({ kind: 'text', base: 'theirs' })
    expect(file.isDirty).toBe(false)
  })

  test('of a deleted file can be saved again or discarded', async () => {
    const { disk, file } = await open('one')
    type(file, 'mine')
    disk.change(undefined)
    await file.save()
    expect(known(file)).toMatchObject({ theirs: 'gone' })
    await file.keepMine()
    expect(disk.text).toBe('mine')
  })

  test('that the page moves keeps its unsaved changes at the new path', async () => {
    const { disk, file } = await open('one')
    type(file, 'mine')
    file.beginMove()
    const moved = put('b.txt', 'one')
    moved.version = 7
    disk.change(undefined)
    // The watch may report the move before its response arrives.
    await file.refresh()
    expect(known(file)).toEqual({ kind: 'text', base: 'one', etag: '3.7-1', isSaving: false })
    await file.endMove({ access: accessTo('s', 'b.txt'), path: 'b.txt' })
    expect(known(file)).toEqual({ kind: 'text', base: 'one', etag: '3.7-7', isSaving: false })
    await file.save()
    expect([moved.text, disk.text]).toEqual(['mine', undefined])
  })

  test('stays at its path when the move failed', async () => {
    const { disk, file } = await open('one')
    file.beginMove()
    disk.change(undefined)
    await file.refresh()
    await file.endMove()
    expect(known(file)).toMatchObject({ kind: 'text', theirs: 'gone' })
  })

  test('is no longer reported missing when the file is back unchanged', async () => {
    const { disk, file } = await open('one')
    disk.text = undefined
    await file.refresh()
    expect(known(file)).toMatchObject({ theirs: 'gone' })
    disk.text = 'one'
    await file.refresh()
    expect(known(file)).toEqual({ kind: 'text', base: 'one', etag: '3.7-1', isSaving: false })
  })

  test('overwrites another version with the same text', async () => {
    const { disk, file } = await open('one')
    type(file, 'mine')
    disk.change('one')
    await file.save()
    expect([disk.text, file.isDirty]).toEqual(['mine', false])
  })

  test('has no conflict with a version equal to the editor', async () => {
    const { disk, file } = await open('one')
    type(file, 'same')
    disk.change('same')
    await file.refresh()
    expect(known(file)).toMatchObject({ kind: 'text', base: 'same' })
    expect(file.isDirty).toBe(false)
  })
})

describe('a text whose path is no longer a file', () => {
  const others = [
    ['is_a_folder', 'folder'],
    ['special_file', 'special'],
    ['not_a_folder', 'gone'],
  ] as const

  test.each(others)('is kept when the server answers %s', async (refusal, theirs) => {
    const { disk, file } = await open('one')
    disk.refusal = refusal
    disk.change(undefined)
    await file.refresh()
    expect(known(file)).toMatchObject({ kind: 'text', base: 'one', theirs })
    type(file, 'mine')
    await file.keepMine()
    expect([known(file)['theirs'], file.text.toString(), file.isDirty]).toEqual([theirs, 'mine', true])
  })

  test('is noticed by a save', async () => {
    const { disk, file } = await open('one')
    type(file, 'mine')
    disk.refusal = 'is_a_folder'
    disk.change(undefined)
    await file.save()
    expect([known(file)['theirs'], file.text.toString()]).toEqual(['folder', 'mine'])
  })

  test('continues when there is a file again, and is discarded on request', async () => {
    const { disk, file } = await open('one')
    type(file, 'mine')
    disk.refusal = 'is_a_folder'
    disk.change(undefined)
    await file.refresh()
    disk.change('one')
    await file.refresh()
    expect(known(file)).toEqual({ kind: 'text', base: 'one', etag: '3.7-3', isSaving: false })
    disk.change(undefined)
    await file.refresh()
    await file.takeTheirs()
    expect(known(file)).toMatchObject({ kind: 'failed', message: 'is_a_folder', isMissing: false })
  })
})

describe('a conflict', () => {
  async function openConflict(): Promise<{ disk: FakeFile; file: OpenFile }> {
    const opened = await open('one')
    type(opened.file, 'mine')
    opened.disk.change('theirs')
    await opened.file.refresh()
    return opened
  }

  test('is not ended by a save, which asks the user', async () => {
    const { disk, file } = await openConflict()
    const writes = disk.writes
    await file.save()
    await file.save()
    expect([file.saveAttempts.get(), disk.writes, disk.text]).toEqual([2, writes, 'theirs'])
    expect(known(file)).toMatchObject({ theirs: { text: 'theirs' } })
    await file.keepMine()
    type(file, 'more')
    await file.save()
    expect([file.saveAttempts.get(), disk.text]).toEqual([2, 'more'])
  })

  test('ends when no unsaved changes are left', async () => {
    const { file } = await openConflict()
    type(file, 'min')
    expect(known(file)).toMatchObject({ theirs: { text: 'theirs' } })
    type(file, 'one')
    expect(known(file)).toEqual({ kind: 'text', base: 'theirs', etag: '3.7-2', isSaving: false })
    expect([file.text.toString(), file.isDirty]).toEqual(['theirs', false])
  })

  test('ends when all changes from disk were taken', async () => {
    const { file } = await openConflict()
    type(file, 'theirs')
    expect(known(file)).toEqual({ kind: 'text', base: 'theirs', etag: '3.7-2', isSaving: false })
  })

  test('does not end while a save resolves it', async () => {
    const { disk, file } = await openConflict()
    const answer = disk.holdBack('PUT file')
    const keeping = file.keepMine()
    await settled()
    type(file, 'one')
    answer()
    await keeping
    expect([known(file)['base'], file.text.toString(), file.isDirty]).toEqual(['mine', 'one', true])
  })

  test('ends after a failed save when no unsaved changes are left', async () => {
    const { disk, file } = await openConflict()
    const answer = disk.holdBack('PUT file')
    disk.change('theirs again')
    const keeping = file.keepMine()
    await settled()
    type(file, 'one')
    answer()
    await keeping
    expect([known(file)['base'], known(file)['theirs'], disk.text]).toEqual([
      'theirs again',
      undefined,
      'theirs again',
    ])
  })

  test('with a version that is not text stays when no unsaved changes are left', async () => {
    const { disk, file } = await open('one')
    type(file, 'mine')
    disk.change('\0')
    await file.refresh()
    type(file, 'one')
    expect(known(file)).toMatchObject({ kind: 'text', theirs: { text: undefined } })
  })

  test('waits for the end of a composition', async () => {
    const { disk, file } = await open('one')
    file.compose(true)
    type(file, 'mine')
    disk.change('theirs')
    const looking = file.refresh()
    await settled()
    expect(known(file)).toEqual({ kind: 'text', base: 'one', etag: '3.7-1', isSaving: false })
    type(file, 'mine too')
    file.compose(false)
    await looking
    expect(known(file)).toMatchObject({ base: 'one', theirs: { text: 'theirs' } })
    expect(file.text.toString()).toBe('mine too')
    file.compose(true)
    type(file, 'one')
    expect(known(file)).toMatchObject({ theirs: { text: 'theirs' } })
    file.compose(false)
    expect(known(file)).toMatchObject({ base: 'theirs' })
  })
})

describe('a text on a slow connection', () => {
  test('has no conflict with its own save that the watch reports first', async () => {
    const { disk, file } = await open('one')
    type(file, 'two')
    const answer = disk.holdBack('PUT file')
    const saving = file.save()
    type(file, 'two and more')
    const looking = file.refresh()
    await settled()
    answer()
    await Promise.all([saving, looking])
    expect(known(file)).toEqual({ kind: 'text', base: 'two', etag: '3.7-2', isSaving: false })
    expect([file.text.toString(), disk.reads]).toEqual(['two and more', 1])
    await file.save()
    expect(disk.text).toBe('two and more')
  })

  test.each(['GET stat', 'GET file'] as const)('does not go back to what a late %s read', async (late) => {
    const { disk, file } = await open('one')
    disk.change('theirs')
    await file.refresh()
    disk.change('one')
    const answer = disk.holdBack(late)
    const looking = file.refresh()
    await settled()
    disk.text = 'theirs'
    disk.version = 2
    type(file, 'mine')
    await file.save()
    answer()
    await looking
    expect(known(file)).toMatchObject({ base: 'mine', isSaving: false })
    expect([file.text.toString(), file.isDirty, disk.text]).toEqual(['mine', false, 'mine'])
  })

  test('is refreshed once more for all changes reported during a refresh', async () => {
    const { disk, file } = await open('one')
    disk.change('two')
    const answer = disk.holdBack('GET file')
    const looks = [file.refresh()]
    await settled()
    disk.change('three')
    looks.push(file.refresh(), file.refresh(), file.refresh())
    answer()
    await Promise.all(looks)
    expect([known(file)['base'], disk.reads]).toEqual(['three', 3])
  })

  test('is read once per version, however often it is reported', async () => {
    const { disk, file } = await open('one')
    for (let time = 0; time < 3; time += 1) await file.refresh()
    expect(disk.reads).toBe(1)
    type(file, 'mine')
    disk.change('theirs')
    for (let time = 0; time < 3; time += 1) await file.refresh()
    expect(disk.reads).toBe(2)
  })

  test('has no conflict with a save whose response was lost', async () => {
    const { disk, file } = await open('one')
    for (const text of ['two', 'three']) {
      type(file, text)
      const { fetch: whole } = globalThis
      const cut = async (...sent: Parameters<typeof fetch>): Promise<Response> => {
        await whole(...sent)
        throw new TypeError('Failed to fetch')
      }
      globalThis.fetch = Object.assign(cut, { preconnect: whole.preconnect })
      expect(file.save()).rejects.toThrow('Server unreachable')
      await settled()
      globalThis.fetch = whole
    }
    expect(known(file)).toMatchObject({ base: 'one', isSaving: false })
    expect(disk.text).toBe('two')
    type(file, 'four')
    await file.save()
    expect([disk.text, file.isDirty, known(file)['theirs']]).toEqual(['four', false, undefined])
  })

  test('loaded twice is the one requested last', async () => {
    const { disk, file } = await open('x'.repeat(MAX_EDIT_BYTES + 1))
    const answer = disk.holdBack('GET stat')
    const first = file.refresh()
    await settled()
    disk.waits.clear()
    await file.load(true)
    type(file, 'mine')
    answer()
    await first
    expect([known(file)['kind'], file.text.toString()]).toEqual(['text', 'mine'])
  })
})

test('a key press does not build the whole text', async () => {
  const { file } = await open('line\n'.repeat(10_000))
  const { lines } = file.text
  const typed = file.text.withLines(lines.replace(10, 10, FileText.of('x').lines))
  typed.toString = fail
  file.text.toString = fail
  file.edited(typed)
  expect(file.dirty.get()).toBe(true)
  file.edited(file.text.withLines(typed.lines.replace(10, 11, FileText.of('').lines)))
  expect(file.dirty.get()).toBe(false)
})

test('keeps a byte order mark before typed text', async () => {
  const { disk, file } = await open('\u{feff}one')
  const { lines } = file.text
  file.edited(file.text.withLines(lines.replace(0, 0, FileText.of('N').lines)))
  await file.save()
  expect(disk.text).toBe('\u{feff}None')
})

describe('what is not text', () => {
  test('is shown as a hex dump or an image', async () => {
    expect(known((await open('a\0b')).file)).toMatchObject({ kind: 'binary', sizeBytes: 3 })
    expect(known((await open('a\0b', 'x.png')).file)).toMatchObject({ kind: 'image', type: 'image/png' })
  })

  test('is missing', async () => {
    expect(known((await open(undefined)).file)).toMatchObject({ kind: 'failed', isMissing: true })
  })
})

test('asks before opening a large file, and opens no huge one', async () => {
  const { file } = await open('x'.repeat(MAX_EDIT_BYTES + 1))
  expect(known(file)).toMatchObject({ kind: 'large', canOpen: true })
  await file.load(true)
  expect(known(file)).toMatchObject({ kind: 'text' })
  const huge = new OpenFile(
    {
      stat: async () => ({ size: MAX_OPEN_BYTES + 1, etag: '' }),
      read: fail,
      write: fail,
    },
    'a',
  )
  await huge.load(true)
  expect(known(huge)).toMatchObject({ kind: 'large', canOpen: false })
})

function fail(): never {
  throw new Error('not asked for')
}

test('a file that outgrows the limit while it is open is not read whole', async () => {
  const { disk, file } = await open('text')
  disk.change('x'.repeat(MAX_EDIT_BYTES + 1))
  const response = { isRead: false }
  disk.read = (text) => {
    let sent = 0
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        sent += 64 * 1024
        if (sent >= text.length) response.isRead = true
        controller.enqueue(new Uint8Array(64 * 1024))
      },
    })
    return new Response(body, {
      headers: { etag: `"${disk.etag}"`, 'content-length': String(text.length) },
    })
  }
  await file.refresh()
  expect(known(file)).toEqual({ kind: 'large', sizeBytes: MAX_EDIT_BYTES + 1, canOpen: true })
  expect(response.isRead).toBe(false)
})

test('unsaved text is kept beside a file that outgrows the limit', async () => {
  const { disk, file } = await open('text')
  type(file, 'typed')
  disk.change('x'.repeat(MAX_EDIT_BYTES + 1))
  await file.refresh()
  expect(known(file)).toMatchObject({ kind: 'text', theirs: { text: undefined, etag: disk.etag } })
  expect(file.text.toString()).toBe('typed')
  await file.takeTheirs()
  expect(known(file)).toMatchObject({ kind: 'large', canOpen: true })
})

test('saves one at a time, and the first waiting save covers everything', async () => {
  const { disk, file } = await open('text')
  const goOn = disk.holdBack('PUT file')
  type(file, 'text 1')
  const saves = [file.save()]
  for (const text of ['text 12', 'text 123', 'text 1234']) {
    type(file, text)
    saves.push(file.save())
  }
  goOn()
  await Promise.all(saves)
  expect(disk.text).toBe('text 1234')
  expect(disk.writes).toBe(2)
})
