"""Put a report together: cover, contents, Items, statements and notes, in the order a filing has them."""

import tomllib
from collections.abc import Callable, Mapping
from typing import Any

from reportlab.platypus import CondPageBreak, Flowable, PageBreak, Spacer

from evals.specimens.layout import MARK, Row, Styles, Table, TableFlowable, write
from evals.specimens.reports import HERE, Report
from evals.specimens.results import cash_and_debt, revenue_and_profit, segment_results
from evals.specimens.tables import tables

BOILERPLATE: dict[str, Any] = tomllib.loads((HERE / "boilerplate.toml").read_text(encoding="utf-8"))
GAP = "\u00a0" * 30
COUNTS = ("zero", "one", "two", "three", "four", "five")


def shared_wording(name: str, variant: int) -> str:
    """One variant of a shared text; two companies that agree on one text differ on the next."""
    variants: list[str] = BOILERPLATE[name]
    place = list(BOILERPLATE).index(name)
    return variants[(variant + place * (variant // 3)) % len(variants)]


def pdf(report: Report, variant: int) -> bytes:
    """The report as a PDF. `variant` chooses among shared wordings and is a company's own."""
    running = f"{report.company['name']} | {report.year} Form {report.form}"
    return write(report.look, running, report.title, Document(report, variant))


class Document:
    """The flowables of one report; called once for each layout pass."""

    def __init__(self, report: Report, variant: int) -> None:
        self.report, self.variant = report, variant
        self.company, self.prose = report.company, report.company["prose"]
        self.styles = Styles(report.look)
        self.tables = tables(report)
        self.story: list[Flowable] = []
        self.entries: list[tuple[str, str]] = []

    def __call__(self, pages: Mapping[str, str]) -> list[Flowable]:
        self.story = []
        entries, self.entries = self.entries, []
        self._cover()
        self._contents(entries, pages)
        parts = self._annual if self.report.form == "10-K" else self._interim
        parts()
        self._signatures()
        return self.story

    # Small words of this builder.

    def _add(self, *flowables: Flowable) -> None:
        self.story += flowables

    def _say(self, *texts: str) -> None:
        self._add(*(self.styles.text(text.format_map(self.report.facts)) for text in texts))

    def _shared(self, *names: str, **more: str) -> None:
        for name in names:
            self._add(self.styles.text(shared_wording(name, self.variant).format_map({**self.report.facts, **more})))

    def _table(self, name: str) -> None:
        self._add(self.styles.table(self.tables[name]), Spacer(1, 8))

    def _part(self, text: str) -> None:
        self.entries.append((text, text))
        self._add(self.styles.part(text))

    def _item(self, text: str) -> None:
        part = next(entry for entry, _ in reversed(self.entries) if entry.startswith("PART"))
        self.entries.append((text, part))
        self._add(CondPageBreak(90), self.styles.item(text))

    def _head(self, text: str) -> None:
        self._add(CondPageBreak(70), self.styles.head(text))

    # Front pages.

    def _cover(self) -> None:
        report, company, centred = self.report, self.company, self.styles.centred
        annual = report.form == "10-K"
        span = "fiscal year" if annual else "quarterly period"
        title = "ANNUAL" if annual else "QUARTERLY"
        boxes = ("[X]", "[\u00a0\u00a0]")
        section = "PURSUANT TO SECTION 13 OR 15(d) OF THE SECURITIES EXCHANGE ACT OF 1934"
        self._add(
            centred("UNITED STATES", 12, bold=True, after=0),
            centred("SECURITIES AND EXCHANGE COMMISSION", 13, bold=True, after=0),
            centred("Washington, D.C. 20549", 10, after=12),
            centred(f"FORM {report.form}", 18, bold=True, after=10),
            self.styles.text(f"{boxes[0]} {title} REPORT {section}"),
            centred(f"For the {span} ended {report.end}", 10.5, bold=True, after=2),
            centred("or", 9, after=2),
            self.styles.text(f"{boxes[1]} TRANSITION REPORT {section}"),
            centred(f"Commission file number: {company['file_number']}", 10, after=14),
            centred(company["name"], 19, bold=True, after=0),
            centred("(Exact name of registrant as specified in its charter)", 8, after=12),
            centred(f"{company['state']}{GAP}{company['irs']}", 10.5, bold=True, after=0),
            centred(f"(State of incorporation){GAP[:12]}(I.R.S. Employer Identification No.)", 8, after=6),
            centred(f"Central Index Key (CIK): {company['cik']}", 10, after=0),
            centred(f"Standard Industrial Classification code: {company['sic']}", 10, after=6),
            centred(company["address"], 10.5, bold=True, after=0),
            centred("(Address of principal executive offices and zip code)", 8, after=6),
            centred(company["phone"], 10.5, bold=True, after=0),
            centred("(Registrant's telephone number, including area code)", 8, after=10),
            self.styles.text("Securities registered pursuant to Section 12(b) of the Act:"),
            self._securities(),
            Spacer(1, 8),
        )
        for text in self._cover_notes():
            self._add(self.styles.small(text))

    def _securities(self) -> Flowable:
        header = ((("Trading symbol", 0, 0), ("Exchange on which registered", 1, 1)),)
        rows = (Row("Common stock, $0.01 par value", (self.company["ticker"], self.company["exchange"])),)
        return self.styles.table(Table(header, rows, column=150.0, left=2))

    def _cover_notes(self) -> list[str]:
        report, company = self.report, self.company
        shares = company["shares"][-1 if report.year == 2024 else -2] * 0.985
        value = shares * float(company["price"][str(report.year)])
        notes = [
            "Indicate by check mark whether the registrant has filed all reports required to be filed by Section 13 or "
            "15(d) of the Act during the preceding 12 months, and has been subject to such filing requirements for the "
            "past 90 days.  Yes [X]  No [  ]",
            "Large accelerated filer [X]   Accelerated filer [  ]   Non-accelerated filer [  ]   "
            "Smaller reporting company [  ]   Emerging growth company [  ]",
        ]
        if report.form == "10-K":
            notes.append(
                f"The aggregate market value of common stock held by non-affiliates was approximately ${value:,.0f} "
                "million, based on the closing price on the last business day of the second fiscal quarter."
            )
            notes.append("Documents incorporated by reference: portions of the proxy statement, in Part III.")
        notes.append(f"Shares of common stock outstanding on {report.filed}: {shares * 1e6:,.0f}.")
        notes.append(f"{MARK}. Every company, person, product and figure in this document is made up.")
        return notes

    def _contents(self, entries: list[tuple[str, str]], pages: Mapping[str, str]) -> None:
        rows = [
            Row(entry, ("",), "subtotal")
            if entry == part
            else Row(entry, (pages.get(f"{part}/{entry}", ""),), indent=1)
            for entry, part in entries
        ]
        header = ((("Page", 0, 0),),)
        self._add(PageBreak(), self.styles.centred("TABLE OF CONTENTS", 12, bold=True, after=8))
        self._add(self.styles.table(Table(header, tuple(rows) or (Row(""),), column=60.0)), Spacer(1, 14))
        self._shared("forward_looking")
        self._add(PageBreak())

    # The annual report.

    def _annual(self) -> None:
        self._part("PART I")
        self._business()
        self._item("Item 1A. Risk Factors")
        self._shared("risk_opening")
        for risk in self.company["risks"]:
            if self.report.year in risk.get("years", (2023, 2024)):
                self._add(CondPageBreak(80), self.styles.lead(risk["title"].format_map(self.report.facts)))
                self._say(risk["text"])
        self._item("Item 1B. Unresolved Staff Comments")
        self._say("None.")
        self._item("Item 2. Properties")
        self._say(
            "Our principal properties at the end of {fy} are listed below. We consider them suitable and adequate."
        )
        self._table("properties")
        self._item("Item 3. Legal Proceedings")
        self._say(self.prose["legal"])
        self._item("Item 4. Mine Safety Disclosures")
        self._say("Not applicable.")
        self._part("PART II")
        self._item("Item 5. Market for Registrant's Common Equity, Related Stockholder Matters and Issuer Purchases")
        self._shared("market")
        self._say("Purchases of our common stock in the fourth quarter were as follows.")
        self._table("repurchases")
        self._item("Item 6. [Reserved]")
        self._discussion("Item 7.")
        self._item("Item 7A. Quantitative and Qualitative Disclosures About Market Risk")
        self._market_risk()
        self._add(PageBreak())
        self._item("Item 8. Financial Statements and Supplementary Data")
        self._opinion()
        self._add(PageBreak())
        self._statements(("income", "balance", "cash_flows", "equity"))
        self._notes()
        self._closing_items()

    def _business(self) -> None:
        self._item("Item 1. Business")
        self._head("Overview")
        self._say(*self.prose["overview"])
        self._head("Segments")
        self._say(*(segment["about"] for segment in self.company["segments"]))
        for name, head in HEADS.items():
            if name in self.prose:
                self._head(head)
                self._say(self.prose[name])
        self._head("Available information")
        self._shared("available")

    def _closing_items(self) -> None:
        self._item("Item 9. Changes in and Disagreements With Accountants on Accounting and Financial Disclosure")
        self._say("None.")
        self._item("Item 9A. Controls and Procedures")
        self._shared("controls")
        self._shared("internal_control")
        self._item("Item 9B. Other Information")
        self._say(
            "No director or officer adopted or ended a Rule 10b5-1 trading arrangement in the last fiscal quarter."
        )
        self._part("PART III")
        self._item("Items 10 to 14. Directors, Compensation, Ownership, Relationships and Accountant Fees")
        self._shared("proxy")
        self._part("PART IV")
        self._item("Item 15. Exhibits and Financial Statement Schedules")
        self._say(
            "(a) The consolidated financial statements and the report of {auditor} are listed in the index to Item 8. "
            "Schedules are omitted because they do not apply or the information is in the notes.",
            "(b) Exhibits: 3.1 Articles of incorporation. 3.2 By-laws. 10.1 Credit agreement. 21 Subsidiaries. 23 "
            "Consent of {auditor}. 31.1 and 31.2 Certifications under Section 302. 32 Certification under Section 906.",
        )

    def _opinion(self) -> None:
        self._head("Report of Independent Registered Public Accounting Firm")
        self._say("To the shareholders and the Board of Directors of {name}:")
        self._shared("opinion")
        self._shared("basis_for_opinion")
        self._say(f"/s/ {self.company['auditor']}", f"{self.company['auditor_city']}, {self.report.filed}")

    # Shared by both forms.

    def _statements(self, names: tuple[str, ...]) -> None:
        """Each statement on a page of its own, or below the one before where it fits."""
        for name in names:
            self._room(name)
            self._table(name)
            self._add(self.styles.small("See the accompanying notes to the consolidated financial statements."))
            self._add(Spacer(1, 16))
        self._add(PageBreak())

    def _room(self, name: str) -> None:
        """Start a new page unless a heading and the table fit on this one."""
        _, height = TableFlowable(self.tables[name], self.report.look).wrap(0, 0)
        self._add(CondPageBreak(height + 80))

    def _discussion(self, item: str) -> None:
        results: Mapping[str, list[str]] = BOILERPLATE["results"]
        self._item(f"{item} Management's Discussion and Analysis of Financial Condition and Results of Operations")
        self._head("Overview")
        self._shared("overview")
        self._room("results")
        self._head("Results of operations")
        self._table("results")
        self._add(*map(self.styles.text, revenue_and_profit(self.report, results, self.variant)))
        self._head("Segment results")
        for name, paragraph in segment_results(self.report, results, self.variant):
            self._add(self.styles.lead(name), self.styles.text(paragraph))
        if self.report.quarter:
            self._say(self.company["quarter"]["update"])
        self._head("Liquidity and capital resources")
        self._add(*map(self.styles.text, cash_and_debt(self.report, results, self.variant)))
        if not self.report.quarter:
            self._say(self.prose["liquidity"])
            self._head("Outlook")
            self._say(self.prose["outlook"])
            self._head("Critical accounting estimates")
            self._shared("critical")
            self._say(self.prose["estimate"])

    def _market_risk(self) -> None:
        self._say(*self.prose["market_risk"])
        if "rate_shocks" in self.tables:
            self._table("rate_shocks")

    def _notes(self) -> None:
        annual = self.report.form == "10-K"
        kind = "" if annual else "condensed "
        self._add(self.styles.centred(f"Notes to {kind}consolidated financial statements", 11.5, bold=True, after=8))
        number = 0
        for heading, add in self._note_list():
            number += 1
            self._head(f"Note {number}. {heading}")
            add()

    def _note_list(self) -> list[tuple[str, Callable[[], None]]]:
        company, prose = self.company, self.prose
        annual, bank = self.report.form == "10-K", company["kind"] == "bank"
        count = COUNTS[len(company["segments"])]
        first = ["basis", "estimates"] if annual else ["interim_basis"]
        listed: list[tuple[str, Callable[[], None]]] = [
            ("Basis of presentation", lambda: self._shared(*first)),
        ]
        if annual and "revenue_note" in prose:
            listed.append(("Revenue recognition", lambda: self._say(prose["revenue_note"])))
        listed.append(("Segment information", lambda: self._with_table("segments_note", "segments", count=count)))
        if bank:
            listed.append(("Loans and allowance for credit losses", self._loan_note))
            listed.append(("Deposits", lambda: self._say_table(prose["deposits"], "deposits")))
        if annual:
            listed.append(("Goodwill", lambda: self._say_table(prose["goodwill_note"], "goodwill")))
        listed.append(("Debt" if not bank else "Borrowings", lambda: self._say_table(company["debt"]["text"], "debt")))
        if annual:
            rate = str(company.get("lease_rate", "5.1"))
            listed.append(("Leases", lambda: self._with_table("leases_note", "leases", lease_rate=rate)))
            listed.append(("Income taxes", lambda: self._with_table("tax_note", "taxes")))
        listed.append(("Commitments and contingencies", lambda: self._say(prose["commitments"], prose["legal"])))
        if annual:
            listed.append(("Subsequent events", lambda: self._say(prose["subsequent"])))
        return listed

    def _with_table(self, wording: str, table: str, **more: str) -> None:
        self._shared(wording, **more)
        self._table(table)

    def _say_table(self, text: str, table: str) -> None:
        self._say(text)
        self._table(table)

    def _loan_note(self) -> None:
        self._say_table(self.prose["loans"], "loans")
        self._say_table(self.prose["allowance"], "allowance")

    # The quarterly report.

    def _interim(self) -> None:
        quarter = self.company["quarter"]
        self._part("PART I. FINANCIAL INFORMATION")
        self._item("Item 1. Financial Statements")
        self._statements(("income", "balance", "cash_flows"))
        self._notes()
        self._discussion("Item 2.")
        self._item("Item 3. Quantitative and Qualitative Disclosures About Market Risk")
        self._market_risk()
        self._item("Item 4. Controls and Procedures")
        self._shared("controls")
        self._part("PART II. OTHER INFORMATION")
        self._item("Item 1. Legal Proceedings")
        self._say(self.prose["legal"])
        self._item("Item 1A. Risk Factors")
        self._say(
            "Except as follows, the risk factors in our last annual report have not changed materially.",
            quarter["risk"],
        )
        self._item("Item 2. Unregistered Sales of Equity Securities and Use of Proceeds")
        self._say("Purchases of our common stock during the quarter were as follows.")
        self._table("repurchases")
        self._item("Item 6. Exhibits")
        self._say(
            "31.1 and 31.2 Certifications under Section 302. 32 Certification under Section 906. 101 Interactive data."
        )

    def _signatures(self) -> None:
        company = self.company
        self._add(CondPageBreak(220), Spacer(1, 16), self.styles.centred("SIGNATURES", 12, bold=True, after=8))
        self._say(
            "Pursuant to the requirements of the Securities Exchange Act of 1934, the registrant has duly caused this "
            "report to be signed on its behalf by the undersigned, thereunto duly authorized.",
            f"{company['name']}",
            f"Date: {self.report.filed}",
            f"/s/ {company['chief_executive']}, President and Chief Executive Officer",
            f"/s/ {company['chief_financial']}, Executive Vice President and Chief Financial Officer",
        )


HEADS = {
    "strategy": "Strategy",
    "customers": "Customers",
    "suppliers": "Suppliers and counterparties",
    "competition": "Competition",
    "seasonality": "Seasonality",
    "regulation": "Regulation",
    "people": "Human capital",
}
"""Sections of Item 1 by their key in a company's prose; a company may lack some."""
