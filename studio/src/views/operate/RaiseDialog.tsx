import { type FormEvent, useId, useState } from "react";

import type { Budget } from "../../api/types.ts";
import { common } from "../../text/common.ts";
import { operate } from "../../text/operate.ts";
import { Button } from "../../ui/Button.tsx";
import { Failure } from "../../ui/Notice.tsx";
import { raiseBudget, refreshOperate } from "./api.ts";
import { formatAmount, type MeterAmounts, metersOf, readAmount } from "./budgets.ts";
import { Foreign } from "./Foreign.tsx";
import { OpenDialog, useAction } from "./parts.tsx";

const text = operate.budgets;

/** Asks for new limits of a budget, by meter. */
export function RaiseDialog(props: { budget: Budget; whose: string; onClose: () => void }) {
  const { budget, whose, onClose } = props;
  const meters = metersOf(budget) ?? [];
  const [entered, setEntered] = useState<Readonly<Record<string, string>>>({});
  const [isChecked, setIsChecked] = useState(false);
  const raise = useAction(
    (limits: Record<string, number>) => raiseBudget(budget, limits),
    () => {
      void refreshOperate("budgets");
      onClose();
    },
  );
  const problems = new Map(
    meters.map((meter) => [meter.meter, problemOf(meter, entered[meter.meter] ?? "")]),
  );
  const limits = limitsOf(meters, entered);
  const isEmpty = Object.keys(limits).length === 0;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setIsChecked(true);
    if (!isEmpty && [...problems.values()].every((problem) => problem === undefined)) raise.run(limits);
  };
  return (
    <OpenDialog title={text.raiseTitle} onClose={onClose}>
      <form className="stack" onSubmit={submit} noValidate>
        <p>
          <Foreign text={whose} />
        </p>
        <p>{text.raiseWhat}</p>
        {meters.map((meter) => (
          <LimitField
            key={meter.meter}
            meter={meter}
            value={entered[meter.meter] ?? ""}
            problem={isChecked ? problems.get(meter.meter) : undefined}
            onChange={(value) => setEntered({ ...entered, [meter.meter]: value })}
          />
        ))}
        <p className="field-problem" role="alert">
          {isChecked && isEmpty && text.nothing}
        </p>
        {raise.error && <Failure error={raise.error} />}
        <div className="dialog-actions">
          <Button onClick={onClose}>{common.cancel}</Button>
          <Button kind="primary" type="submit" disabled={raise.isBusy}>
            {raise.isBusy ? operate.working : text.raiseYes}
          </Button>
        </div>
      </form>
    </OpenDialog>
  );
}

function limitsOf(
  meters: readonly MeterAmounts[],
  entered: Readonly<Record<string, string>>,
): Record<string, number> {
  const limits: Record<string, number> = {};
  for (const { meter } of meters) {
    const limit = readAmount(meter, entered[meter] ?? "");
    if (limit !== undefined) limits[meter] = limit;
  }
  return limits;
}

function problemOf(amounts: MeterAmounts, entered: string): string | undefined {
  if (entered.trim() === "") return undefined;
  const limit = readAmount(amounts.meter, entered);
  if (limit === undefined) return text.notNumber;
  return limit > amounts.spent ? undefined : text.tooLow(formatAmount(amounts.meter, amounts.spent));
}

function LimitField(props: {
  meter: MeterAmounts;
  value: string;
  problem: string | undefined;
  onChange: (value: string) => void;
}) {
  const { meter, value, problem, onChange } = props;
  const fieldId = useId();
  const unit = text.units[meter.meter];
  const name = text.meters[meter.meter] ?? meter.meter;
  return (
    <div className="field">
      <label htmlFor={fieldId}>
        {text.raiseField(name)} {unit && `(${unit})`}
      </label>
      <input
        id={fieldId}
        inputMode="decimal"
        value={value}
        aria-invalid={problem !== undefined}
        aria-describedby={`${fieldId}-now ${fieldId}-problem`}
        onChange={(event) => onChange(event.target.value)}
      />
      <p id={`${fieldId}-now`} className="muted small">
        {text.spentSoFar(formatAmount(meter.meter, meter.spent))}
        {meter.raised !== undefined && ` · ${text.limit(formatAmount(meter.meter, meter.raised))}`}
      </p>
      <p id={`${fieldId}-problem`} className="field-problem">
        {problem}
      </p>
    </div>
  );
}
