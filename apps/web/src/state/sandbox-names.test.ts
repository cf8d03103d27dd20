import { expect, test } from 'bun:test'
import { nameSandbox, SandboxNames } from './sandbox-names.ts'

function openShelf() {
  const texts = new Map<string, string>()
  return {
    getItem: (key: string) => texts.get(key) ?? null,
    setItem: (key: string, text: string) => void texts.set(key, text),
  }
}

const ID = 'fmra0vsq'.repeat(4)

test('a sandbox is never called by its id', () => {
  expect(nameSandbox(ID, {}, true)).toBe('Shared sandbox')
  expect(nameSandbox(ID, {}, false)).toBe('Unknown sandbox')
  expect(nameSandbox('dev', {}, false)).toBe('dev')
})

test('a sandbox that is gone keeps its name, also after a reload, and not for somebody else', () => {
  const storage = openShelf()
  new SandboxNames(storage).learn(ID, 'dev')
  const names = new SandboxNames(storage)
  expect(nameSandbox(ID, names.all.get(), false)).toBe('dev')
  names.clear()
  expect(new SandboxNames(storage).all.get()).toEqual({})
})

test('what is kept wrong is no name', () => {
  for (const kept of ['{', '7', 'null', `{"${ID}":7}`, '{"x":"y"}']) {
    const storage = openShelf()
    storage.setItem('sandwire.names', kept)
    expect(new SandboxNames(storage).all.get()).toEqual({})
  }
})

test("another's sandbox has the name that is told, or that of its owner", () => {
  const names = new SandboxNames(openShelf())
  const told = [{}, { owner: 'ann' }, { sandboxName: 'dev', owner: 'ann' }, { owner: 'ann' }]
  const called = told.map((one) => {
    names.learnShared(ID, one)
    return names.all.get()[ID]
  })
  expect(called).toEqual([undefined, 'ann’s sandbox', 'dev', 'dev'])
})
