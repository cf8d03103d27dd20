import { expect, test } from 'bun:test'
import { findMissingCapabilities, limitSupervisor } from './supervisor-privileges.ts'

test('names the capabilities that this machine does not give to root', () => {
  expect(findMissingCapabilities('Name:\tbun\nCapEff:\t000001ffffffffff\n')).toEqual([])
  expect(findMissingCapabilities('Name:\tbun\nCapEff:\t000001fffeffffff\n')).toEqual(['CAP_SYS_RESOURCE'])
})

test.if(process.getuid?.() === 0)('limits only supervisors of root', () => {
  expect(limitSupervisor(false)).toEqual([])
  expect(limitSupervisor(true).join(' ')).toContain(
    '--no-new-privs --inh-caps=-all --bounding-set=-all,+chown,',
  )
})
