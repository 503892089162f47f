import { expect, it } from 'vitest'
import { dollars, short } from './amounts'

it('never round something to nothing', () => {
  expect([dollars(0), dollars(10), dollars(1500), dollars(40_000)]).toEqual(['$0', '< $0.0001', '$0.0015', '$0.04'])
  expect([short(999), short(12_300), short(200_000), short(1_000_000)]).toEqual(['999', '12.3k', '200k', '1M'])
})
