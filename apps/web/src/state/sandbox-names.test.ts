import { expect, test } from 'bun:test'
import { nameSandbox, SandboxNames } from './sandbox-names.ts'

const ID = 'fmra0vsq'.repeat(4)

test('a sandbox is never called by its id', () => {
  expect(nameSandbox(ID, {}, true)).toBe('A shared sandbox')
  expect(nameSandbox(ID, {}, false)).toBe('Unknown sandbox')
  expect(nameSandbox('dev', {}, false)).toBe('dev')
})

test('a sandbox that is gone keeps its name', () => {
  const names = new SandboxNames()
  names.learn(ID, 'dev')
  expect(nameSandbox(ID, names.all.get(), false)).toBe('dev')
})

test("another's sandbox has the name that is told, or that of its owner", () => {
  const names = new SandboxNames()
  const told = [{}, { owner: 'ann' }, { sandboxName: 'dev', owner: 'ann' }, { owner: 'ann' }]
  const called = told.map((one) => {
    names.learnShared(ID, one)
    return names.all.get()[ID]
  })
  expect(called).toEqual([undefined, 'Sandbox of ann', 'dev', 'dev'])
})
