import { expect, test } from 'bun:test'
import { ApiError } from '../api/request.ts'
import { FileText } from '../editor/file-text.ts'
import { openTab } from '../layout/layout.ts'
import { DirtyViews } from '../state/dirty-views.ts'
import { Workbench } from '../state/workbench.ts'
import type { FileAccess, OpenFile } from './open-file.ts'
import { OpenFiles } from './open-files.ts'

/** Open files over texts in a map, with one of them open. */
function openStorage(disk: Map<string, string>, path: string) {
  const access = (_: string, at: string): FileAccess => {
    const read = (): string => {
      const text = disk.get(at)
      if (text === undefined) throw new ApiError('file_not_found', 'no such file', 404)
      return text
    }
    return {
      stat: async () => ({ size: read().length, etag: read() }),
      read: async () => ({ bytes: new TextEncoder().encode(read()), etag: read() }),
      write: async (text) => (disk.set(at, text), text),
    }
  }
  const workbench = new Workbench({ getItem: () => null, setItem: () => undefined })
  const dirty = new DirtyViews()
  const storage = new OpenFiles(workbench, dirty, access)
  const view = { kind: 'file', sandbox: 's', path } as const
  workbench.changeLayout((layout) => openTab(layout, view, workbench.mint))
  const viewId = Object.keys(workbench.layout.get().views)[0] ?? ''
  return { workbench, dirty, storage, viewId, file: storage.of(viewId, view) }
}

function baseOf({ state }: OpenFile): string | undefined {
  const shown = state.get()
  return shown.kind === 'text' ? shown.base.toString() : undefined
}

/** Waits until a file is loaded. */
function loaded({ state }: OpenFile): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => {
      if (state.get().kind !== 'loading') resolve()
    }
    state.subscribe(look)
    look()
  })
}

test('moves a pane with its folder, including unsaved text', async () => {
  const disk = new Map([['old/a', 'one']])
  const { workbench, dirty, storage, viewId, file } = openStorage(disk, 'old/a')
  await loaded(file)
  file.edited(FileText.of('mine'))
  await storage.move({ sandbox: 's', from: 'old', to: 'new/place' }, async () => {
    disk.delete('old/a')
    await file.refresh()
    disk.set('new/place/a', 'one')
  })
  const view = workbench.layout.get().views[viewId]
  expect(view).toEqual({ kind: 'file', sandbox: 's', path: 'new/place/a' })
  expect(view?.kind === 'file' ? storage.of(viewId, view) : undefined).toBe(file)
  expect([file.text.toString(), baseOf(file)]).toEqual(['mine', 'one'])
  expect(dirty.views.get().get(viewId)?.path).toBe('new/place/a')
  expect(await storage.save(viewId)).toBe(true)
  expect([...disk]).toEqual([['new/place/a', 'mine']])
})

test('leaves a pane alone when the move fails or concerns another file or sandbox', async () => {
  const { workbench, storage, viewId, file } = openStorage(new Map([['a', 'one']]), 'a')
  await loaded(file)
  const fail = async (): Promise<void> => {
    throw new Error('there is something')
  }
  expect(storage.move({ sandbox: 's', from: 'a', to: 'b' }, fail)).rejects.toThrow('there is something')
  await storage.move({ sandbox: 'other', from: 'a', to: 'b' }, async () => undefined)
  await storage.move({ sandbox: 's', from: 'ab', to: 'b' }, async () => undefined)
  expect(workbench.layout.get().views[viewId]).toMatchObject({ path: 'a' })
  expect(baseOf(file)).toBe('one')
})
