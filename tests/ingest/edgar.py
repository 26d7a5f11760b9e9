"""Filings of invented companies as EDGAR holds them: inline XBRL of today, HTML of the 2000s and text of the 1990s."""

from collections.abc import Mapping, Sequence

_SPAN = "color:#000000;font-family:'Helvetica',sans-serif;font-size:9pt;font-weight:400;line-height:100%"


def _shown(text: str) -> str:
    return f'<span style="{_SPAN}">{text}</span>' if text else ""


def _value(value: str) -> str:
    """The cells of one value: sign, digits and closing mark, as generators lay them out."""
    if value.startswith("$"):
        return f"<td>{_shown('$')}</td><td>{_shown(value[1:] + '&#160;')}</td><td></td>"
    if value.endswith(")"):
        return f'<td colspan="2">{_shown(value[:-1])}</td><td>{_shown(")")}</td>'
    if value.endswith("%"):
        return f'<td colspan="2">{_shown(value[:-1] + "&#160;")}</td><td>{_shown("%")}</td>'
    return f'<td colspan="2">{_shown(value + "&#160;")}</td><td></td>'


def statement(headers: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> str:
    """A table of today: sizing row, spacer columns, a cell of its own for each sign and closing mark."""
    spacer = '<td colspan="3" style="padding:0 1pt"/>'
    sizing = "<tr>" + '<td style="width:1.0%"/>' * (3 + 6 * len(headers)) + "</tr>"
    head = f"<tr>{spacer}" + spacer.join(f'<td colspan="3">{_shown(h)}</td>' for h in headers) + "</tr>"
    body = "".join(
        f'<tr><td colspan="3">{_shown(label)}</td>' + spacer.join(_value(v) for v in values) + "</tr>"
        for label, values in rows
    )
    return f'<table style="border-collapse:collapse;display:inline-table;width:100%">{sizing}{head}{body}</table>'


def paragraph(text: str) -> str:
    return f'<div style="margin-top:9pt;text-align:justify">{_shown(text)}</div>'


BREAK = '<hr style="page-break-after:always"/>'


def inline_xbrl(facts: Mapping[str, str], *pages: str) -> str:
    """A document with hidden cover facts, one page for each text of HTML."""
    hidden = "".join(
        f'<ix:nonNumeric contextRef="c-1" name="dei:{name}" id="f-{name}">{value}</ix:nonNumeric>'
        for name, value in facts.items()
    )
    return (
        "<?xml version='1.0' encoding='ASCII'?>\n"
        '<html xmlns:ix="http://www.xbrl.org/2013/inlineXBRL"><head><title>orr-20230930</title></head><body>'
        f'<div style="display:none"><ix:header><ix:hidden>{hidden}</ix:hidden></ix:header></div>'
        + BREAK.join(f"<div>{page}</div>" for page in pages)
        + "</body></html>"
    )


ORRIN = inline_xbrl(
    {
        "AmendmentFlag": "false",
        "EntityCentralIndexKey": "0000123456",
        "DocumentFiscalYearFocus": "2023",
        "DocumentFiscalPeriodFocus": "FY",
    },
    paragraph("UNITED STATES")
    + paragraph("SECURITIES AND EXCHANGE COMMISSION")
    + '<div>FORM <ix:nonNumeric name="dei:DocumentType">10-K</ix:nonNumeric></div>'
    + '<div>For the fiscal year ended <ix:nonNumeric name="dei:DocumentPeriodEndDate">September&#160;30, 2023'
    + "</ix:nonNumeric></div>"
    + '<div><ix:nonNumeric name="dei:EntityRegistrantName">Orrin Harbour, Inc.</ix:nonNumeric></div>'
    + paragraph("(Exact name of Registrant as specified in its charter)")
    + '<table><tr><td>Common Stock</td><td><ix:nonNumeric name="dei:TradingSymbol">ORR</ix:nonNumeric></td>'
    + "<td>The Nasdaq Stock Market LLC</td></tr></table>",
    paragraph("TABLE OF CONTENTS")
    + "<table>"
    + "".join(
        f'<tr><td><a href="#{anchor}">Item {item}.</a></td><td><a href="#{anchor}">{title}</a></td>'
        f'<td><a href="#{anchor}">{page}</a></td></tr>'
        for anchor, item, title, page in (
            ("a1", "1", "Business", 3),
            ("a2", "1A", "Risk Factors", 3),
            ("a3", "2", "Properties", 3),
            ("a4", "3", "Legal Proceedings", 3),
            ("a5", "8", "Financial Statements and Supplementary Data", 4),
        )
    )
    + "</table>",
    '<div id="a1"></div>'
    + paragraph("Item 1.&#160;&#160;&#160;&#160;Business")
    + paragraph("Orrin Harbour runs harbours on the north coast and ships what is landed there.")
    + '<div id="a2"></div>'
    + paragraph("Item 1A. Risk Factors")
    + paragraph("Storms may close our harbours.<sup>(1)</sup>")
    + '<div id="a3"></div>'
    + paragraph("Item 2. Properties")
    + paragraph("We own four piers.")
    + '<div id="a4"></div>'
    + paragraph("Item 3. Legal Proceedings")
    + paragraph("None.")
    + '<div id="a5"></div>',
    paragraph("Item 8. Financial Statements and Supplementary Data")
    + paragraph("CONSOLIDATED STATEMENTS OF OPERATIONS")
    + paragraph("(In millions, except per-share amounts)")
    + statement(
        ["September&#160;30,<br/>2023", "September&#160;24,<br/>2022"],
        [
            ("Net sales:", ()),
            ("Landing fees", ("$298,085", "$316,199")),
            ("Freight", ("85,200", "78,129")),
            ("Other income/(expense), net", ("(565)", "(334)")),
            ("Effective tax rate", ("14.7%", "16.2%")),
            ("Dividends", ("$&#8212;", "$0.91")),
        ],
    )
    + paragraph("Orrin Harbour, Inc. | 2023 Form 10-K | 28"),
)
"""A form 10-K of four pages."""

FONTS = """<HTML><HEAD><TITLE>FORM 10-Q</TITLE></HEAD>
<BODY BGCOLOR="WHITE">
<P STYLE="line-height:1.0pt;margin-top:0pt"><FONT SIZE="1">&nbsp;</FONT></P>
<P ALIGN="CENTER"><FONT FACE="Times New Roman" SIZE="4"><B>SECURITIES AND EXCHANGE COMMISSION </B></FONT></P>
<P ALIGN="CENTER"><FONT SIZE="4"><B>FORM 10-Q </B></FONT></P>
<TABLE CELLSPACING="0"><TR><TD><FONT FACE="WINGDINGS" SIZE="2">x</FONT></TD>
<TD><FONT SIZE="2">QUARTERLY REPORT</FONT></TD></TR></TABLE>
<P ALIGN="CENTER"><FONT SIZE="2"><B>For the quarterly period ended March&nbsp;31, 2004 </B></FONT></P>
<P ALIGN="CENTER"><FONT SIZE="5"><B>TALLOW MILLS INC. </B></FONT></P>
<P ALIGN="CENTER"><FONT SIZE="1"><B>(Exact Name of Registrant as Specified in Its Charter) </B></FONT></P>
<p Style='page-break-before:always'></p><HR SIZE="3" COLOR="#999999">
<P><FONT SIZE="2"><B>CONDENSED CONSOLIDATED BALANCE SHEETS<BR>(in thousands)</B></FONT></P>
<TABLE WIDTH="100%" BORDER="0">
<TR><TD VALIGN="bottom"></TD>
<TD>&nbsp;</TD>
<TD NOWRAP COLSPAN="2"><FONT SIZE="1"><B>March&nbsp;31,<BR>2004</B></FONT></TD>
<TD>&nbsp;</TD><TD NOWRAP COLSPAN="2"><FONT SIZE="1"><B>December&nbsp;31,<BR>2003</B></FONT></TD><TD>&nbsp;</TD>
<TR BGCOLOR="#cceeff"><TD><P STYLE="margin-left:10px"><FONT SIZE="2">Cash and cash
equivalents</FONT></P></TD>
<TD>&nbsp;</TD>
<TD><FONT SIZE="2">$</FONT></TD>
<TD ALIGN="right"><FONT SIZE="2">1,204</FONT></TD>
<TD NOWRAP>&nbsp;</TD>
<TD><FONT SIZE="2">$</FONT></TD>
<TD ALIGN="right"><FONT SIZE="2">998</FONT></TD>
<TD>&nbsp;</TD></TR>
<TR><TD><FONT SIZE="2">Accumulated deficit<SUP>(a)</SUP></FONT></TD>
<TD>&nbsp;</TD>
<TD></TD>
<TD><FONT SIZE="2">(310</FONT></TD>
<TD><FONT SIZE="2">)</FONT></TD>
<TD></TD>
<TD><FONT SIZE="2">(402</FONT></TD>
<TD NOWRAP><FONT SIZE="2">)</FONT></TD></TR>
</TABLE>
<P><FONT SIZE="2">Prices rose on March&nbsp;1<SUP>st</SUP>, 2004<SUP>2</SUP>.</FONT></P>
</BODY></HTML>
"""

TYPED = """<PAGE>
                       SECURITIES AND EXCHANGE COMMISSION
                             WASHINGTON, D.C. 20549

                                   FORM 10-K

                   FOR THE FISCAL YEAR ENDED DECEMBER 31, 1995

                             QUILL & LEDGER COMPANY
- --------------------------------------------------------------------------------
             (Exact name of registrant as specified in its charter)
<PAGE>   2
ITEM 1.  BUSINESS

     The Company binds ledgers. See page ...... 14 for its history.

                         CONSOLIDATED STATEMENTS OF INCOME
                             (Dollars in thousands)
<TABLE>
<CAPTION>
                                              1995         1994         1993
                                          --------     --------     --------
<S>                                       <C>          <C>          <C>
Net sales ............................    $ 42,118     $ 39,902     $ 37,455
Cost of goods sold ...................      30,007       28,865       27,310
Interest, net ........................        (412)        (388)         ---
                                          --------     --------     --------
Net income                                $  4,115     $  3,980     $  3,712
                                          ========     ========     ========
</TABLE>

                                       2
"""


def document(form: str, text: str, description: str = "") -> str:
    return (
        f"<DOCUMENT>\n<TYPE>{form}\n<SEQUENCE>1\n<FILENAME>a.htm\n<DESCRIPTION>{description}\n<TEXT>\n{text}\n"
        "</TEXT>\n</DOCUMENT>\n"
    )


def submission(form: str, *documents: str, period: str = "19951231", name: str = "QUILL & LEDGER CO /DE/") -> str:
    return (
        "-----BEGIN PRIVACY-ENHANCED MESSAGE-----\nProc-Type: 2001,MIC-CLEAR\n\n"
        "<SEC-DOCUMENT>0000000000-96-000001.txt : 19960329\n<SEC-HEADER>0000000000-96-000001.hdr.sgml : 19960329\n"
        f"ACCESSION NUMBER:\t\t0000000000-96-000001\nCONFORMED SUBMISSION TYPE:\t{form}\nPUBLIC DOCUMENT COUNT:\t\t2\n"
        f"CONFORMED PERIOD OF REPORT:\t{period}\nFILED AS OF DATE:\t\t19960328\n\nFILER:\n\n\tCOMPANY DATA:\t\n"
        f"\t\tCOMPANY CONFORMED NAME:\t\t\t{name}\n\t\tCENTRAL INDEX KEY:\t\t\t0000777777\n"
        "\t\tSTANDARD INDUSTRIAL CLASSIFICATION:\tBLANKBOOKS & BOOKBINDING [2780]\n\t\tFISCAL YEAR END:\t\t\t1231\n"
        "</SEC-HEADER>\n" + "".join(documents) + "</SEC-DOCUMENT>\n-----END PRIVACY-ENHANCED MESSAGE-----\n"
    )
