/**
 * How a sandbox of this machine is found. Host and control share numbered slots, made before control starts: to control
 * each is a binding it can dial, on the machine each is a unix socket that is there while a sandbox has the slot.
 */
export const SLOT_ADDRESS = /^slot:(0|[1-9][0-9]{0,3})$/

/** Most slots that an address can spell. */
export const MAX_SLOTS = 10_000

export function formatSlotAddress(slot: number): string {
  return `slot:${slot}`
}

/** The slot of an address; undefined when it is none. */
export function parseSlotAddress(address: string): number | undefined {
  const number = SLOT_ADDRESS.exec(address)?.[1]
  return number === undefined ? undefined : Number(number)
}

/** What control calls a slot among its bindings. */
export function slotBindingName(slot: number): `SLOT_${number}` {
  return `SLOT_${slot}`
}
