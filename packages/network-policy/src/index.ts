export { AllowList, isAllowEntry } from './allow-list.ts'
export { type IpAddress, NetworkList, parseIpAddress } from './ip-address.ts'
export { HOST_SETS } from './host-sets.ts'
export * from './target.ts'
