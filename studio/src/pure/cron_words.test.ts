import fc from "fast-check";
import { describe, expect, test } from "vitest";

import { scheduleInWords } from "./cron_words.ts";

describe("schedules in words", () => {
  test.each([
    ["* * * * *", "Every minute"],
    ["*/10 * * * *", "Every 10 minutes"],
    ["0 * * * *", "Every hour on the hour"],
    ["15 * * * *", "Every hour at minute 15"],
    ["0,30 * * * *", "Every 30 minutes"],
    ["5,35 * * * *", "At minutes 5 and 35 of an hour"],
    ["30 4 * * 1-5", "At 04:30, Monday to Friday"],
    ["30 4 * * MON-FRI", "At 04:30, Monday to Friday"],
    ["0 9,17 * * *", "At 09:00 and 17:00"],
    ["0 9 1 * *", "At 09:00, on day 1 of the month"],
    ["0 9 1,15 * *", "At 09:00, on day 1 and 15 of the month"],
    ["0 9 1-7 * *", "At 09:00, on day 1 to 7 of the month"],
    ["0 9 1 * 1", "At 09:00, on day 1 of the month or on Mondays"],
    ["0 0 1 1 *", "At 00:00, on day 1 of the month, in January"],
    ["0 12 * JAN-MAR,DEC *", "At 12:00, in January to March and December"],
    ["*/15 9-17 * * 1-5", "Every 15 minutes, from 09:00 to 17:59, Monday to Friday"],
    ["0 */2 * * *", "Every hour on the hour, in every 2nd hour"],
    ["0 8 * * 0", "At 08:00, on Sundays"],
    ["0 8 * * 7", "At 08:00, on Sundays"],
    ["0 8 * * 6,0", "At 08:00, on Saturdays and Sundays"],
    ["@daily", "At 00:00"],
    ["@weekly", "At 00:00, on Sundays"],
  ])("%s", (expression, words) => expect(scheduleInWords(expression)).toBe(words));

  test("seven minutes do not divide an hour, so it is not `every 7 minutes`", () => {
    expect(scheduleInWords("*/7 * * * *")).toBe("At 9 minutes of an hour");
  });

  test.each([
    "",
    "* * * *",
    "* * * * * *",
    "0 0 L * *",
    "0 0 * * 5#2",
    "61 * * * *",
    "5-1 * * * *",
    "@reboot",
    "5/10 * * * *",
    "*/0 * * * *",
    ",1 * * * *",
  ])("says nothing about `%s`", (expression) => expect(scheduleInWords(expression)).toBeUndefined());

  test("any text has words or none, and never fails", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const words = scheduleInWords(text);
        return words === undefined || words.length > 0;
      }),
    );
  });

  test("a time of day is named as it is", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 23 }), fc.integer({ min: 0, max: 59 }), (hour, minute) => {
        const clock = `${String(hour).padStart(2, "0")}:${String(minute).padStart(2, "0")}`;
        expect(scheduleInWords(`${minute} ${hour} * * *`)).toBe(`At ${clock}`);
      }),
    );
  });
});
