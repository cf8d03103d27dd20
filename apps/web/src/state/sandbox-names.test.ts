import { expect, test } from 'bun:test'
import { nameSandbox, SandboxNames } from './sandbox-names.ts'

function openStorage() {
  const texts = new Map<string, string>()
  return {
    getItem: (key: string) => texts.get(key) ?? null,
    setItem: (key: string, text: string) => void texts.set(key, text),
  }
}

const ID = 'fmra0vsq'.repeat(4)

test('never names a sandbox by its id', () => {
  expect(nameSandbox(ID, {}, true)).toBe('Shared sandbox')
  expect(nameSandbox(ID, {}, false)).toBe('Unknown sandbox')
  expect(nameSandbox('dev', {}, false)).toBe('dev')
})

test('keeps the name of a destroyed sandbox across reloads, but not for another account', () => {
  const storage = openStorage()
  new SandboxNames(storage).learn(ID, 'dev')
  const names = new SandboxNames(storage)
  expect(nameSandbox(ID, names.all.get(), false)).toBe('dev')
  names.clear()
  expect(new SandboxNames(storage).all.get()).toEqual({})
})

test('ignores corrupt names', () => {
  for (const kept of ['{', '7', 'null', `{"${ID}":7}`, '{"x":"y"}']) {
    const storage = openStorage()
    storage.setItem('sandwire.names', kept)
    expect(new SandboxNames(storage).all.get()).toEqual({})
  }
})

test("names another account's sandbox by its name or its owner", () => {
  const names = new SandboxNames(openStorage())
  const told = [{}, { owner: 'ann' }, { sandboxName: 'dev', owner: 'ann' }, { owner: 'ann' }]
  const called = told.map((one) => {
    names.learnShared(ID, one)
    return names.all.get()[ID]
  })
  expect(called).toEqual([undefined, 'ann’s sandbox', 'dev', 'dev'])
})
