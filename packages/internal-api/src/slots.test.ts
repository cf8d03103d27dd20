import { expect, test } from 'bun:test'
import { decodeSandboxStatus } from './host-api.ts'
import { formatSlotAddress, slotBindingName, MAX_SLOTS, parseSlotAddress } from './slots.ts'

test('a slot has one address and one binding', () => {
  for (const slot of [0, 7, 99, MAX_SLOTS - 1]) expect(parseSlotAddress(formatSlotAddress(slot))).toBe(slot)
  expect(slotBindingName(17)).toBe('SLOT_17')
})

test('other texts are not slot addresses, so that control connects to nothing else (threat T22)', () => {
  for (const address of [
    '',
    'slot:',
    'slot:-1',
    'slot:01',
    'slot:1.5',
    'slot:10000',
    'slot:1/..',
    'slot:1\n',
    'SLOT_1',
    'http://127.0.0.1:1',
    'unix:/run/host.sock',
  ]) {
    expect(parseSlotAddress(address)).toBeUndefined()
    const status = { id: 'a', state: 'running', address, epoch: 'e', startedMs: 1 }
    expect(decodeSandboxStatus(status)).toBeUndefined()
  }
})
