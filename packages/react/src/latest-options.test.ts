import { expect, test } from 'bun:test'
import { latestOptions } from './latest-options.ts'
import type { OwnTerminalProps } from './terminal.tsx'

const url = 'https://sandwire.example'

/** All props that may change with every render. */
const draw = () => ({
  getTicket: () => Promise.resolve('ticket'),
  confirmPaste: () => Promise.resolve(true),
  confirmLink: () => Promise.resolve(true),
  onOpenFile: () => {},
  onBell: () => {},
})

test('uses the callbacks that the component was given last', () => {
  let props: OwnTerminalProps = { url, ...draw() }
  const options = latestOptions(() => props)
  const last = draw()
  props = { url, ...last }
  expect(options.getTicket).toBe(last.getTicket)
  expect(options.confirmPaste).toBe(last.confirmPaste)
  expect(options.confirmLink).toBe(last.confirmLink)
  expect(options.onOpenFile).toBe(last.onOpenFile)
  expect(options.onBell).toBe(last.onBell)
})

test('follows callbacks that are added or removed later', () => {
  let props: OwnTerminalProps = { url, allowsClipboardWrite: true }
  const options = latestOptions(() => props)
  props = { url, ...draw(), copiesOnSelect: true, asksBeforePaste: 'always' }
  expect(options).toMatchObject({ copiesOnSelect: true, asksBeforePaste: 'always' })
  expect(options.allowsClipboardWrite).toBeUndefined()
  expect(options.onOpenFile).toBeDefined()
})

test('attaches to what was given first, and to nothing else', () => {
  let props: OwnTerminalProps = { url, sandbox: 'dev', cmd: 'sh', args: ['-l'], size: { cols: 91, rows: 17 } }
  const options = latestOptions(() => props)
  props = { url: 'https://other.example', sandbox: 'other' }
  expect(options).toMatchObject({ url, size: { cols: 91, rows: 17 } })
  expect(options.request).toEqual({ sandbox: 'dev', cmd: 'sh', args: ['-l'] })
})
