/**
 * Addresses of local sandboxes. Host and control share numbered slots, created before control starts: for control each is a
 * binding, on the machine each is a unix socket that exists while a sandbox uses the slot.
 */
export const SLOT_ADDRESS = /^slot:(0|[1-9][0-9]{0,3})$/

/** Number of slots that addresses can name. */
export const MAX_SLOTS = 10_000

export function formatSlotAddress(slot: number): string {
  return `slot:${slot}`
}

/** The slot number in an address; undefined for other addresses. */
export function parseSlotAddress(address: string): number | undefined {
  const number = SLOT_ADDRESS.exec(address)?.[1]
  return number === undefined ? undefined : Number(number)
}

/** Name of a slot's binding in control. */
export function slotBindingName(slot: number): `SLOT_${number}` {
  return `SLOT_${slot}`
}
