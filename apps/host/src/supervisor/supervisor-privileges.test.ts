import { expect, test } from 'bun:test'
import { findMissingCapabilities, limitSupervisor } from './supervisor-privileges.ts'

test('names the capabilities that this machine does not give to root', () => {
  expect(findMissingCapabilities('Name:\tbun\nCapEff:\t000001ffffffffff\n')).toEqual([])
  expect(findMissingCapabilities('Name:\tbun\nCapEff:\t000001fffeffffff\n')).toEqual(['CAP_SYS_RESOURCE'])
})

test.if(process.getuid?.() === 0)('limits only supervisors of root', () => {
  expect(limitSupervisor(false, true)).toEqual([])
  expect(limitSupervisor(true, false).join(' ')).toContain(
    '--no-new-privs --inh-caps=-all --bounding-set=-all,+chown,',
  )
})

test.if(process.getuid?.() === 0)('lets only supervisors of a served folder map root', () => {
  expect(limitSupervisor(true, false).join(' ')).not.toContain('setfcap')
  const map = Bun.spawnSync([...limitSupervisor(true, true), 'unshare', '--user', '--map-root-user', 'true'])
  expect(map.stderr.toString()).toBe('')
})
