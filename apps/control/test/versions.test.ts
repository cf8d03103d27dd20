import { describe, expect, test } from 'bun:test'
import { checkVersions, decodeVersions } from '../src/sandbox/sandboxd-client.ts'

const ours = { protocol: 3, compatibleFrom: 2 }

describe('the handshake with sandboxd', () => {
  test.each([
    ['the same version', { protocol: 3, compatibleFrom: 2 }],
    ['one version older', { protocol: 2, compatibleFrom: 1 }],
    ['one version newer', { protocol: 4, compatibleFrom: 3 }],
  ])('accepts %s', (_, theirs) => {
    expect(() => checkVersions(ours, theirs)).not.toThrow()
  })

  test('reports an outdated sandbox', () => {
    expect(() => checkVersions(ours, { protocol: 1, compatibleFrom: 1 })).toThrow('its sandboxd is old')
  })

  test('reports an outdated server', () => {
    expect(() => checkVersions(ours, { protocol: 5, compatibleFrom: 4 })).toThrow('this server is old')
  })

  test.each([undefined, null, {}, { protocol: '1', compatible_from: 1 }, { protocol: 1 }])(
    'refuses %j',
    (value) => {
      expect(decodeVersions(value)).toBeUndefined()
    },
  )

  test('accepts unknown fields of a newer version', () => {
    expect(decodeVersions({ protocol: 1, compatible_from: 0, more: true })).toEqual({
      protocol: 1,
      compatibleFrom: 0,
    })
  })
})
